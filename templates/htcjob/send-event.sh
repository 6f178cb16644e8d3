#!/bin/sh
# Tells the daemon that a job has ended: a CloudEvent over HTTP, in binary mode.
#
#   send-event.sh EXIT-STATUS
#
# HTCJOB_EVENTS_URL has the address. The file "event" beside this script holds the beginning of a JSON object, with the token of the
# job: neither is an argument of a program, which other users of the machine could read. A message that does not arrive costs time alone,
# since the daemon watches the job, too. So this script always succeeds.
set -u
umask 077

code=$1
url=${HTCJOB_EVENTS_URL:-}
[ -n "$url" ] || exit 0
directory=$(dirname "$0")

number_in_ad() {
  sed -n "s/^$1 = \([0-9][0-9]*\)\$/\1/p" "${_CONDOR_JOB_AD:-/dev/null}" 2>/dev/null | head -n 1
}
cluster=$(number_in_ad ClusterId)
proc=$(number_in_ad ProcId)

message=$(mktemp "${TMPDIR:-/tmp}/event.XXXXXX") || exit 0
trap 'rm -f "$message"' EXIT
{
  cat "$directory/event"
  [ -z "$cluster" ] || printf ',"jobid":"%s.%s"' "$cluster" "${proc:-0}"
  printf ',"retcode":"%s"}\n' "$code"
} >"$message"

# One event keeps its id however often it is sent.
id=${HTCJOB_EVENT_ID:-job}.$(date +%s).$$
time=$(date -u +%Y-%m-%dT%H:%M:%SZ)
source=cern.ch
type=htcjob.cloudevent

# Prints the status of the answer, or 000.
by_curl() {
  curl -q --silent --max-time 10 --proto =http,https --output /dev/null --write-out '%{http_code}' \
    --header 'ce-specversion: 1.0' --header "ce-type: $type" --header "ce-source: $source" --header "ce-id: $id" \
    --header "ce-time: $time" --header 'Content-Type: application/json' --data-binary "@$message" -- "$url"
}

by_wget() {
  wget --no-config --server-response --output-document=/dev/null --timeout=10 --tries=1 --max-redirect=0 \
    --header='ce-specversion: 1.0' --header="ce-type: $type" --header="ce-source: $source" --header="ce-id: $id" \
    --header="ce-time: $time" --header='Content-Type: application/json' --post-file="$message" -- "$url" 2>&1 |
    sed -n 's/^ *HTTP\/[0-9.]* \([0-9][0-9][0-9]\).*/\1/p' | tail -n 1
}

by_python() {
  python3 - "$url" "$message" "$type" "$source" "$id" "$time" <<'END'
import sys, urllib.error, urllib.request
url, message, kind, source, id, time = sys.argv[1:]
names = {"ce-specversion": "1.0", "ce-type": kind, "ce-source": source, "ce-id": id, "ce-time": time,
         "content-type": "application/json"}
try:
    with open(message, "rb") as body:
        request = urllib.request.Request(url, data=body.read(), headers=names, method="POST")
    print(urllib.request.urlopen(request, timeout=10).status)
except urllib.error.HTTPError as error:
    print(error.code)
except Exception:
    print("000")
END
}

tool=
for name in curl wget python3; do
  command -v "$name" >/dev/null 2>&1 && tool=$name && break
done
case $tool in
  curl) send=by_curl ;;
  wget) send=by_wget ;;
  python3) send=by_python ;;
  *)
    echo "thresher: no curl, wget or python3 is here to tell of the end of the job" >&2
    exit 0
    ;;
esac

tries=${HTCJOB_EVENT_TRIES:-5}
pause=${HTCJOB_EVENT_PAUSE:-1}
while :; do
  status=$($send)
  tries=$((tries - 1))
  case $status in
    2??) exit 0 ;;
    408 | 429) ;;
    # The same would be refused again.
    4??) tries=0 ;;
  esac
  if [ "$tries" -le 0 ]; then
    echo "thresher: the end of the job was not told to the daemon (HTTP ${status:-000}): it will look itself" >&2
    exit 0
  fi
  sleep "$pause"
  pause=$((pause * 2))
done
