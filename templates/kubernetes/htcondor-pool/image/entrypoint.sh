#!/bin/sh
# Runs one role of an HTCondor pool in a container: entrypoint.sh central-manager|schedd|worker
# docs/pool.md names the variables of its environment. Exit codes of a worker: 0 = it ended itself, 64 = wrong settings,
# 69 = it did not join the pool, 70 = its startd failed.
set -u
here=$(dirname "$(readlink -f "$0")")
. "$here/lib/common.sh"
. "$here/lib/secrets.sh"
. "$here/lib/settings.sh"
. "$here/lib/worker.sh"

role=${1:-}
case $role in
  central-manager) logs='MasterLog CollectorLog NegotiatorLog' ;;
  schedd) logs='MasterLog SchedLog' ;;
  worker) logs='MasterLog StartLog' ;;
  *) refuse "the role is \"$role\": write central-manager, schedd or worker as the argument" ;;
esac
number JOIN_TIMEOUT 300
join_timeout=$value
number GRACE_PERIOD 30
instance=$(cat "$proc/sys/kernel/random/uuid")
write_settings
# A container of this Pod that ended before may have left it.
rm -f "$run/drained"

# For `kubectl logs`.
for one in $logs; do : >"$log/$one" || refuse "$log cannot be written by the user $(id -u): mount an emptyDir there"; done
(cd "$log" && exec tail -qn 0 -F $logs) &

condor_master -f &
master=$!
stopping=
stop() {
  [ -z "$stopping" ] || return 0
  stopping=yes
  if [ "$role" = worker ]; then
    # pre-stop has used up the grace period: a second drain would last until Kubernetes kills everything, and tell no schedd.
    [ -e "$run/drained" ] || drain
    # Jobs that still run have no time left. In a fast shutdown the schedd hears of their end, and need not wait for their lease.
    ! works || set -- QUIT
  fi
  kill -"$1" "$master" 2>/dev/null
}
trap 'stop TERM' TERM INT
trap 'stop QUIT' QUIT
if [ "$role" = worker ]; then
  watch_joining "$join_timeout" &
  watch_startd &
fi

# A signal ends a wait too. Waiting also takes in the orphans that a process with the number 1 inherits.
while :; do
  wait "$master"
  code=$?
  kill -0 "$master" 2>/dev/null || break
done
[ ! -s "$run/not-joined" ] || fail 69 "$(cat "$run/not-joined")"
[ "$role" != worker ] || end_as_startd
exit "$code"
