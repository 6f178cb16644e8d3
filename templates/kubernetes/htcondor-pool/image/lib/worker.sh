# shellcheck shell=sh
# Part of the entrypoint of a worker: how it joins its pool, and how it leaves.

# Whether the collector shows the slot of this very container: another one of its name may have been there before.
in_collector() {
  [ -n "$(timeout 10 condor_status -constraint "HtcondorPoolInstance == \"$instance\"" -limit 1 -af Name 2>/dev/null)" ]
}

# Why the worker is not in the pool: what HTCondor says of the way to the collector, and a remedy, in one line.
cause() {
  said=$(timeout 10 condor_ping -type COLLECTOR -verbose ADVERTISE_STARTD 2>&1)
  answer=$?
  # A packet that a firewall drops gets no refusal, and condor_ping would wait on without a word.
  [ "$answer" != 124 ] || said="$said no answer within 10 s"
  said=$(printf '%s' "$said" | tr '\n' ' ')
  case $answer:$said in
    0:*) remedy="the collector lets it in, but does not show its slot: read the log of the startd" ;;
    *'failed to make connection'* | *"couldn't locate"* | 124:*)
      remedy="compare CONDOR_HOST with the name and the address of the central manager, and look at network policies"
      ;;
    *)
      remedy="its token or password is none of this pool: compare the key and TRUST_DOMAIN with those of the central manager"
      for secret in "$run"/tokens.d/* "$run/passwords.d/POOL"; do [ ! -f "$secret" ] || break; done
      [ -f "$secret" ] ||
        remedy="it has neither a token nor a password: mount a token at $etc/tokens-orig.d, or give it one by signingKeyFile or by --secret-file of \`thresher submit\`"
      ;;
  esac
  printf '%s (%s)' "$remedy" "$said"
}

# end_master SIGNAL SECONDS: repeats the signal, since a master that has only just started misses one, and after these seconds kills the
# master. Without a route to its collector HTCondor's shared port does not end for minutes, and the Pod would seem to work on.
end_master() {
  left=$2
  while kill -"$1" "$master" 2>/dev/null; do
    [ "$left" -gt 0 ] || kill -KILL "$master"
    left=$((left - 2))
    sleep 2
  done
}

# Ends the master when the worker has not joined in time: the factory must see a failure, where an idle worker ends well. A job proves
# that the worker has joined, also where the collector does not answer just now.
watch_joining() {
  until=$(($(date +%s) + $1))
  until in_collector || works; do
    if [ "$(date +%s)" -ge "$until" ]; then
      printf 'htcondor-pool: this worker did not join the pool at %s within %s s: %s\n' "$central_manager:$port" "$1" "$(cause)" >"$run/not-joined.new"
      mv "$run/not-joined.new" "$run/not-joined"
      end_master QUIT 10
      return
    fi
    sleep 5
  done
  : >"$run/joined"
}

# Takes no more jobs, and comes back when none runs or when the grace period is nearly over.
drain() {
  number GRACE_PERIOD 30
  until=$(($(date +%s) + value - 10))
  timeout 20 condor_off -peaceful -startd >&2
  while works && [ "$(date +%s)" -lt "$until" ]; do sleep 1; done
  : >"$run/drained"
}

# Gives `last` what the master has written about the end of the startd.
startd_ended() { last=$(grep 'The STARTD (pid [0-9]*) ' "$log/MasterLog" | tail -n 1) && [ -n "$last" ]; }

# Ends the master after the startd, which ends by itself without a claim. HTCondor's own way, a DAEMON_SHUTDOWN of the master by
# STARTD_StartTime, also ends a master that has not started its startd yet: seen on a busy machine.
watch_startd() {
  until startd_ended; do sleep 2; done
  end_master TERM 30
}

# Whether it was in the pool. One that left so early that it was not seen there was, if it had a job or the collector lets it in.
was_in_pool() {
  [ -e "$run/joined" ] || grep -q ' -> Claimed' "$log/StartLog" ||
    timeout 20 condor_ping -type COLLECTOR ADVERTISE_STARTD >/dev/null 2>&1
}

# The exit code of a worker is that of its startd: 0 (no claim, or told to stop) and 99 (drained for good) are good ends. The master may say
# behind the number that it starts no other one. Without a claim
# a worker that the pool refuses may end before JOIN_TIMEOUT is over: it would pass for an idle one.
end_as_startd() {
  startd_ended || return
  case $last in
    *' exited with status 0' | *' exited with status 0 '* | *' exited with status 99' | *' exited with status 99 '*)
      [ -n "$stopping" ] || was_in_pool ||
        fail 69 "htcondor-pool: this worker ended without a job, and had not joined the pool at $central_manager:$port: $(cause)"
      exit 0
      ;;
  esac
  fail 70 "htcondor-pool: the startd of this worker failed: $(grep -E 'ERROR|PANIC|Caught signal' "$log/StartLog" | tail -n 1) (${last#* })"
}
