# shellcheck shell=sh
# Part of the runner of a Pod (run.sh): all that runs around its containers, and the end of what is left of it.

# begin_session PROGRAM...: becomes the program, in a session of its own, by which end_left finds all that it started. A signal of a
# container to its own group, `kill 0`, reaches programs outside of it that are in that group, and would end this script.
begin_session() {
  if has setsid; then exec setsid "$@"; fi
  exec "$@"
}

# end_left PARENT SESSIONS: kills the children of PARENT with all of theirs, and all processes of the sessions. A container has its own
# tree of processes, which ends with it: these are probes, hooks, tunnels, and programs outside of any container. SESSIONS are
# PID:STARTTIME of their first processes: a session whose first process is another one is not ours any more.
end_left() {
  round=0
  while [ "$round" -lt 3 ]; do
    all=
    known=" $1 "
    doomed=
    ours=' '
    for one in $2; do
      # Where a tree of processes is its own, session 0 is whatever came from outside of it.
      [ "${one%:*}" != 0 ] || continue
      ! stat_of "/proc/${one%:*}" || [ "$started" = "${one#*:}" ] || continue
      ours="$ours${one%:*} "
    done
    for stat in /proc/[0-9]*/stat; do
      stat_of "${stat%/stat}" || continue
      pid=$il_stat_pid
      [ "$state" != Z ] || continue
      all="$all $pid:$parent"
      case $ours in *" $session "*) doomed="$doomed $pid" ;; esac
    done
    grown=yes
    while [ -n "$1" ] && [ -n "$grown" ]; do
      grown=
      for one in $all; do
        case $known in *" ${one%:*} "*) continue ;; esac
        case $known in *" ${one#*:} "*)
          known="$known${one%:*} "
          doomed="$doomed ${one%:*}"
          grown=yes
          ;;
        esac
      done
    done
    [ -n "$doomed" ] || return 0
    for pid in $doomed; do kill -KILL "$pid" 2>/dev/null; done
    round=$((round + 1))
  done
}

# The user's own commands have the environment of the job, as the operator's have (prefix.sh). Containers have their own.
run_before() {
  [ -f "$payload/pre-exec" ] || return 0
  # They come from tools that write for bash.
  shell=sh
  ! has bash || shell=bash
  # HTCondor would bring back the programs that they fetch.
  (
    trap - TERM INT HUP QUIT USR1 USR2
    export "TMPDIR=$pod/before"
    cd "$pod/before" && begin_session "$shell" "$payload/pre-exec"
  ) </dev/null &
  begun "$!"
  before=$il_begun
  sessions="$sessions $before"
  while is_there "$before" && [ -z "$ending" ]; do tick; done
  [ -z "$ending" ] || signal TERM "$before"
  wait "${before%:*}"
  code=$?
  [ "$code" = 0 ] || finish_for PreExecFailed "the commands before the containers ended with code $code"
}

# The commands before the containers may have written mesh.sh: it runs its arguments in a network of its own. The containers, with their
# probes and hooks, have to be in there together.
run_in_mesh() {
  case $payload$work in
    *[!A-Za-z0-9_./+@%=:,-]*) finish_for MeshFailed 'the paths of the job have letters that mesh.sh does not take' ;;
  esac
  chmod 700 "$pod/before/mesh.sh"
  mkdir -p "$pod/mesh"
  (
    trap - TERM INT HUP QUIT USR1 USR2
    export "TMPDIR=$pod/before" "SLIRP_TMPDIR=$pod/mesh"
    export "THRESHER_POD_INSIDE=$pod" "THRESHER_PAYLOAD_DIR=$payload" "_CONDOR_SCRATCH_DIR=$work"
    cd "$pod/before" && begin_session ./mesh.sh sh "$payload/run.sh"
  ) </dev/null &
  begun "$!"
  mesh=$il_begun
  sessions="$sessions $mesh"
  told=
  while :; do
    # A signal ends the wait.
    wait "${mesh%:*}"
    is_there "$mesh" || break
    [ -n "$ending" ] && [ -z "$told" ] || continue
    told=yes
    get "$pod/inside"
    [ -n "$got" ] && signal TERM "$got" || end_left '' "$mesh"
  done
  finish_for MeshFailed 'the network of the Pod ended before its containers'
}

# One script stands for all containers: each gets its state, and the first one its output. A script that runs the containers itself may
# write their codes and their output as interLink's slurm plugin does: run-NAME.status and run-NAME.out in $workingPath.
run_job_script() {
  cp "$payload/job-script" "$pod/job-script" && chmod 700 "$pod/job-script"
  first=
  i=0
  while [ "$i" -lt "$count" ]; do
    eval "kind=\$kind_$i"
    if [ "$kind" = init ]; then
      ended "$i" 0 Completed
    elif [ -z "$first" ]; then
      first=$i
      start "$i"
    else
      rm -f "$pod/s/$i/reason"
      put "$pod/s/$i/startedAt" "$(stamp)"
    fi
    put "$pod/s/$i/ready" yes
    i=$((i + 1))
  done
  wake
  await
  get "$pod/s/$first/code"
  code=$got
  get "$pod/s/$first/reason"
  reason=$got
  i=0
  while [ "$i" -lt "$count" ]; do
    eval "kind=\$kind_$i name=\$name_$i"
    wrote=$pod/work/$first/run-$name
    own=$code
    [ "$kind" = main ] || own=0 wrote=$pod/work/$first/init-$name
    [ ! -f "$wrote.out" ] || cat "$wrote.out" >>"$work/$name.log"
    get "$wrote.status"
    case $got in
      '' | *[!0-9]* | ????*) ;;
      *) [ "$got" -gt 255 ] || own=$got ;;
    esac
    case $own in
      0) ended "$i" 0 Completed ;;
      "$code") ended "$i" "$own" "$reason" ;;
      *) ended "$i" "$own" Error ;;
    esac
    i=$((i + 1))
  done
}
