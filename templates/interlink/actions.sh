# shellcheck shell=sh
# Part of the runner of a Pod (run.sh): commands and requests of probes and hooks.

# Has container $1 a line $2?
has_line() {
  while IFS= read -r line; do
    [ "${line%% *}" != "$2" ] || return 0
  done <"$payload/c$1"
  return 1
}

# Has container $1 an action $2? Gives act_kind its kind.
has_action() {
  act_kind=
  while IFS= read -r line; do
    case $line in "action $2 "*) act_kind=${line##* } ;; esac
  done <"$payload/c$1"
  [ -n "$act_kind" ]
}

# Does action $2 of container $1, for $3 seconds at most.
act() {
  has_action "$1" "$2" || return 0
  if [ "$act_kind" = exec ]; then
    eval "from=\$from_$1"
    # A container may take a minute to start: a probe in another one of its image would see nothing of it, and end it.
    most=600
    [ "$2" != preStop ] || most=100
    if [ "$from" != host ] && way_in "$1" "$2" "$most"; then
      (enter "$1" "$2" "$3") </dev/null >/dev/null 2>&1
      set -- "$?"
      close_way
      return "$1"
    else
      # The start of a container is no part of the time that a probe has.
      [ "$from" = host ] || set -- "$1" "$2" "$(($3 + 5))"
      (within "$1" "$2" "$3") </dev/null >/dev/null 2>&1
    fi
    return $?
  fi
  (
    want=word-$2
    limit=$3
    number=$1
    set --
    while IFS= read -r line; do
      case $line in "$want "*)
        decode "${line#* }"
        set -- "$@" "$il_decoded"
        ;;
      esac
    done <"$payload/c$number"
    case $act_kind in
      http) http_get "$limit" "$@" ;;
      tcp) tcp_open "$limit" "$@" ;;
      sleep) exec timeout -s KILL "$limit" sleep "$1" ;;
    esac
  ) </dev/null >/dev/null 2>&1
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# http_get LIMIT SCHEME HOST PORT PATH [HEADER]...: 0 for a status from 200 to 399, as the kubelet takes it. Other users of the machine
# can read the arguments of programs: no header is among them.
http_get() {
  limit=$1 scheme=$2 host=$3 port=$4 path=$5
  shift 5
  if has curl; then
    status=$(for header in "$@"; do
      escape "$header"
      printf 'header = "%s"\n' "$il_escaped"
    done | curl -q --config - -s -k -g --noproxy '*' --path-as-is -o /dev/null --max-time "$limit" -w '%{http_code}' "$scheme://$host:$port$path") || return 1
    case $status in 2?? | 3??) return 0 ;; esac
    return 1
  fi
  headers=
  [ $# -eq 0 ] || headers=$(printf '%s\n' "$@")
  if has python3; then
    printf '%s\n' "$headers" | timeout -s KILL "$limit" python3 -c '
import http.client, ssl, sys
scheme, host, port, path = sys.argv[1:5]
if scheme == "https":
    link = http.client.HTTPSConnection(host, int(port), context=ssl._create_unverified_context())
else:
    link = http.client.HTTPConnection(host, int(port))
lines = [line.rstrip("\n") for line in sys.stdin]
link.request("GET", path, headers=dict(line.split(": ", 1) for line in lines if line))
sys.exit(0 if 200 <= link.getresponse().status < 400 else 1)' "$scheme" "$host" "$port" "$path"
    return $?
  fi
  if [ "$scheme" = http ] && has bash; then
    printf '%s\n' "$headers" | timeout -s KILL "$limit" bash -c '
exec 3<>"/dev/tcp/$1/$2" || exit 1
printf "GET %s HTTP/1.0\r\nHost: %s:%s\r\n" "$3" "$1" "$2" >&3
while IFS= read -r header; do [ -z "$header" ] || printf "%s\r\n" "$header" >&3; done
printf "\r\n" >&3
read -r _ status _ <&3
case $status in 2?? | 3??) exit 0 ;; esac
exit 1' bash "$host" "$port" "$path"
    return $?
  fi
  has wget || return 1
  settings=$(mktemp "$pod/work/wgetrc.XXXXXX") || return 1
  for header in "$@"; do printf 'header = %s\n' "$header"; done >"$settings"
  WGETRC=$settings timeout -s KILL "$limit" wget -q --no-check-certificate -O /dev/null "$scheme://$host:$port$path"
  asked=$?
  rm -f "$settings"
  return "$asked"
}

# tcp_open LIMIT HOST PORT
tcp_open() {
  if has bash; then
    exec timeout -s KILL "$1" bash -c 'exec 3<>"/dev/tcp/$1/$2"' bash "$2" "$3"
  elif has python3; then
    exec timeout -s KILL "$1" python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])))' "$2" "$3"
  else
    exec timeout -s KILL "$1" nc -z "$2" "$3"
  fi
}
