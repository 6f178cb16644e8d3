#!/bin/bash
# A PostgreSQL server of its own on loopback, to try thresher on: server.sh DIRECTORY start|stop|status|url|psql
#
#   start    start it if it does not run, with an empty database `thresher`, and print the address
#   stop     end it; its data stay
#   status   exit 0 when it answers
#   url      print the address for `database.url`
#   psql     a shell on it, with what follows as its arguments
#
# Nothing is installed. As root the server runs as the user `postgres` of Debian's package: PostgreSQL refuses root.
set -euo pipefail

directory=${1:?}
action=${2:-}
port=${THRESHER_POSTGRESQL_PORT:-25433}
url="postgresql://thresher@127.0.0.1:$port/thresher"

fail() {
  echo "test-env: $*" >&2
  exit 1
}
programs() {
  local found
  found=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -n 1)
  [ -n "$found" ] || fail 'no PostgreSQL below /usr/lib/postgresql'
  echo "$found"
}
as_owner() {
  if [ "$(id -u)" = 0 ]; then
    setpriv --reuid postgres --regid postgres --init-groups -- "$@"
  else
    "$@"
  fi
}
shell() { PGPASSWORD=$(cat "$directory/password") "$(programs)/psql" -X -h 127.0.0.1 -p "$port" -U thresher "$@"; }
answers() { shell -qAt -c 'SELECT 1' postgres >/dev/null 2>&1; }

start() {
  if answers; then return; fi
  mkdir -p "$directory"
  if [ ! -s "$directory/data/PG_VERSION" ]; then
    rm -rf "$directory/data"
    mkdir "$directory/data"
    (umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$directory/password")
    cp "$directory/password" "$directory/data.password"
    if [ "$(id -u)" = 0 ]; then chown postgres "$directory" "$directory/data" "$directory/data.password"; fi
    as_owner "$(programs)/initdb" -D "$directory/data" -U thresher -A scram-sha-256 --pwfile="$directory/data.password" \
      -E UTF8 --locale=C.UTF-8 >/dev/null || fail 'initdb failed'
    rm -f "$directory/data.password"
  fi
  as_owner "$(programs)/pg_ctl" -D "$directory/data" -w -t 60 -l "$directory/data/server.log" start \
    -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=''" >/dev/null 2>&1 </dev/null 9>&- ||
    fail "PostgreSQL did not start: see $directory/data/server.log"
  answers || fail "PostgreSQL does not answer on port $port"
  shell -qAt -c "SELECT 1 FROM pg_database WHERE datname = 'thresher'" postgres | grep -q 1 ||
    shell -q -c 'CREATE DATABASE thresher' postgres
}

case $action in
  start)
    start
    echo "url: $url"
    echo "sslmode: disable"
    echo "passwordFile: $directory/password"
    ;;
  stop) if [ -s "$directory/data/postmaster.pid" ]; then as_owner "$(programs)/pg_ctl" -D "$directory/data" -w -m fast stop >/dev/null; fi ;;
  status) answers || exit 3 ;;
  url) echo "$url" ;;
  psql) shell thresher "${@:3}" ;;
  *) fail 'usage: ./scripts/test-env postgresql start|stop|status|url|psql ...' ;;
esac
