# shellcheck shell=sh
# Part of the runner of a Pod (run.sh): probes and hooks of a container while it runs, and its end.

# Waits $2 seconds, or until container $1 has ended, which is no success.
pause() {
  left=$2
  while [ "$left" -gt 0 ]; do
    runs "$1" || return 1
    sleep 1
    left=$((left - 1))
  done
  runs "$1"
}

# Its directory goes with the runner.
runs() {
  [ -d "$pod/s/$1" ] && [ ! -f "$pod/s/$1/code" ]
}

# Gives delay, limit, period, successes and failures of probe $2 of container $1.
timing() {
  delay=
  while IFS= read -r line; do
    case $line in "probe $2 "*)
      fields "${line#probe * }"
      delay=$il_1 limit=$il_2 period=$il_3 successes=$il_4 failures=${line##* }
      ;;
    esac
  done <"$payload/c$1"
  [ -n "$delay" ]
}

# Looks after container $1, in a process of its own, until it has ended. It stays the parent of all that looks beside it, by which the
# end of the runner finds them.
look_after() {
  look "$1"
  wait
}

look() {
  dir=$pod/s/$1
  if has_action "$1" postStart; then
    act "$1" postStart 3600 || {
      stop "$1" PostStartHookError 'the postStart hook failed'
      return
    }
  fi
  if timing "$1" startup; then
    pause "$1" "$delay" || return
    failed=0
    until act "$1" startup "$limit"; do
      failed=$((failed + 1))
      [ "$failed" -lt "$failures" ] || {
        stop "$1" ProbeFailed "the startup probe failed $failed times"
        return
      }
      pause "$1" "$period" || return
    done
  fi
  (live "$1") &
  timing "$1" readiness || {
    put "$dir/ready" yes
    wake
    return
  }
  pause "$1" "$delay" || return
  good=0 bad=0
  while runs "$1"; do
    if act "$1" readiness "$limit"; then
      good=$((good + 1)) bad=0
      [ "$good" -lt "$successes" ] || [ -f "$dir/ready" ] || {
        put "$dir/ready" yes
        wake
      }
    else
      bad=$((bad + 1)) good=0
      [ "$bad" -lt "$failures" ] || [ ! -f "$dir/ready" ] || {
        rm -f "$dir/ready"
        wake
      }
    fi
    pause "$1" "$period" || return
  done
}

live() {
  timing "$1" liveness || return
  pause "$1" "$delay" || return
  bad=0
  while :; do
    if act "$1" liveness "$limit"; then
      bad=0
    else
      bad=$((bad + 1))
      [ "$bad" -lt "$failures" ] || {
        stop "$1" ProbeFailed "the liveness probe failed $bad times"
        return
      }
    fi
    pause "$1" "$period" || return
  done
}

# stop NUMBER REASON MESSAGE: the preStop hook, SIGTERM, and SIGKILL when the grace is over.
stop() {
  dir=$pod/s/$1
  [ ! -f "$dir/code" ] && [ -f "$dir/startedAt" ] || return 0
  # A failed probe and the end of the job may come together.
  mkdir "$dir/stopping" 2>/dev/null || return 0
  put "$dir/message" "$3"
  put "$dir/ending" "$2"
  began=$(date +%s)
  [ "$grace" -eq 0 ] || act "$1" preStop "$grace" || :
  rest=$((grace - $(date +%s) + began))
  # The kubelet gives two seconds to a container whose hook took all of the grace.
  [ "$grace" -eq 0 ] || [ "$rest" -ge 2 ] || rest=2
  # It may not have its process yet, or have ended during its hook.
  until signal_container "$1" TERM; do pause "$1" 1 || return 0; done
  pause "$1" "$rest" || return 0
  signal_container "$1" KILL
}

# signal_container NUMBER SIGNAL. 1: there is no process of the container to be signalled.
signal_container() {
  get "$pod/s/$1/pid"
  [ -n "$got" ] && runs "$1" && signal "$2" "$got"
}
