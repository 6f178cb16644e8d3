#!/bin/sh
# Runs the containers of one Pod on the machine of its job: init containers in their order, then all others at the same time.
# It needs sh, coreutils, and apptainer or singularity.
#
# THRESHER_PAYLOAD_DIR has the data, as lines "KEY VALUE" (src/sources/interlink/pod/lines.ts): "pod" for the whole Pod, "cN" and "eN"
# with the start and the variables of container N, "volumes" with the bytes of all files of volumes, "lN" with the login for an image.
# No shell reads a value of the Pod as its own text, but for the files "prefix", "pre-exec" and "job-script", which are shell text by
# their meaning.
#
# In the job's scratch directory it keeps pod-status.json, and NAME.log with NAME.log.times of each container. All else is wiped at the end.
# If the payload has send-report.sh, it gets the path of pod-status.json after each change.
#
# A mesh network (around.sh) runs this script a second time, inside of it, for the containers alone: THRESHER_POD_INSIDE says so. The
# commands of the operator (prefix.sh) run it a second time, too: THRESHER_POD_PREFIX has their exit code.
set -u
umask 077

payload=${THRESHER_PAYLOAD_DIR:-}
[ -f "$payload/pod" ] || {
  echo 'thresher: THRESHER_PAYLOAD_DIR has no Pod' >&2
  exit 125
}
prefixed=${THRESHER_POD_PREFIX:-}
inside=${THRESHER_POD_INSIDE:-}
work=${_CONDOR_SCRATCH_DIR:-}
if [ -n "$work" ] && [ ! -w "$work" ]; then
  echo "thresher: the directory of the job, $work, cannot be written here: does the machine share it?" >&2
  exit 125
fi
grace=30
deadline=0
log_bytes=0
runtime=apptainer
count=0
. "$payload/state.sh" || exit 125
read_pod || exit 125
# Any end from here on leaves them.
[ -z "$work" ] || [ -n "$prefixed$inside" ] || leave_files
# The operator's commands come first, in a shell of their own: it becomes this script again, with the environment that they left.
if [ -f "$payload/prefix" ] && [ -z "$prefixed$inside" ]; then
  shell=sh
  ! command -v bash >/dev/null 2>&1 || shell=bash
  exec "$shell" "$payload/prefix.sh" "$payload"
fi
[ -n "$prefixed" ] || prefixed=0
if [ -z "$work" ]; then
  work=$(mktemp -d "${TMPDIR:-/tmp}/pod.XXXXXX") || exit 125
  leave_files
fi
# HTCondor brings back files of the scratch directory, and no directories.
pod=$work/.pod
# Where files of the job lie on a shared disk, its secrets stay on the machine.
own=${_CONDOR_MACHINE_AD:-}
[ "${own##*/}" != .machine.ad ] || [ ! -w "${own%/*}" ] || pod=${own%/*}/.pod
[ -z "$inside" ] || pod=$inside

for part in container actions enter look-after images around; do
  . "$payload/$part.sh" || exit 125
done

ending=
stopping=
woken=
term() {
  woken=yes
  [ -n "$ending" ] || ending='Terminated:the job was told to end'
}

# Writes down all that is new, ends all when it is time, and waits a second at most.
tick() {
  woken=
  report
  send
  log_times
  [ "$deadline" -eq 0 ] || [ "$((now - began_all))" -lt "$deadline" ] || [ -n "$ending" ] ||
    ending='DeadlineExceeded:the Pod was active for longer than activeDeadlineSeconds'
  if [ -n "$ending" ] && [ -z "$stopping" ]; then
    stopping=yes
    e=0
    while [ "$e" -lt "$count" ]; do
      (
        trap - TERM INT HUP QUIT USR1 USR2
        stop "$e" "${ending%%:*}" "${ending#*:}"
      ) </dev/null >/dev/null 2>&1 &
      e=$((e + 1))
    done
  fi
  # A signal from before would not end the wait.
  [ -n "$woken" ] || {
    sleep 1 </dev/null >/dev/null 2>&1 &
    wait $!
  }
}

# Waits until all containers that were started have ended.
await() {
  while :; do
    running=
    a=0
    while [ "$a" -lt "$count" ]; do
      eval "keeper=\$keeper_$a"
      if [ -n "$keeper" ] && [ ! -f "$pod/s/$a/code" ]; then
        # The kernel may have killed the process that waits for the container.
        if is_there "$keeper" || [ -f "$pod/s/$a/code" ]; then
          running=yes
        else
          ended "$a" 137 Error 'the process that waited for the container was killed'
        fi
      fi
      a=$((a + 1))
    done
    [ -n "$running" ] || return 0
    tick
  done
}

# Starts container $1. It counts as started at once: an end that comes now has to find it.
start() {
  rm -f "$pod/s/$1/reason"
  put "$pod/s/$1/startedAt" "$(stamp)"
  supervise "$1" &
  begun "$!"
  eval "keeper_$1=\$il_begun"
}

# finish REASON MESSAGE: ends all containers that did not start, wipes the Pod's data and ends with the highest code.
finish() {
  trap '' TERM INT HUP QUIT USR1 USR2
  highest=0
  f=0
  while [ "$f" -lt "$count" ]; do
    [ -f "$pod/s/$f/code" ] || ended "$f" 1 "$1" "$2"
    get "$pod/s/$f/code"
    [ "$got" -le "$highest" ] || highest=$got
    f=$((f + 1))
  done
  report
  log_times
  [ -z "$sender" ] || wait "${sender%:*}"
  send
  [ -z "$sender" ] || wait "${sender%:*}"
  # bash writes of each child that it finds killed.
  {
    end_left "$$" "$sessions"
    [ -n "$inside" ] || wipe
  } 2>/dev/null
  trap - EXIT
  exit "$highest"
}

# Ends as the job was told to, or else as finish REASON MESSAGE says.
finish_for() {
  [ -z "$ending" ] || finish "${ending%%:*}" "${ending#*:}"
  finish "$1" "$2"
}

wipe() {
  chmod -R u+rwX "$pod" 2>/dev/null
  rm -rf "$pod"
  for left in "$payload"/*; do
    # The shell still reads this script.
    case $left in */run.sh) ;; *) rm -rf "$left" 2>/dev/null ;; esac
  done
}

run_containers() {
  i=0
  while [ "$i" -lt "$count" ]; do
    eval "kind=\$kind_$i name=\$name_$i"
    if [ "$kind" = init ]; then
      [ -z "$ending" ] || finish_for
      start "$i"
      await
      get "$pod/s/$i/code"
      [ "$got" = 0 ] || finish_for InitFailed "the init container $name ended with code $got"
    fi
    i=$((i + 1))
  done
  [ -z "$ending" ] || finish_for
  i=0
  while [ "$i" -lt "$count" ]; do
    eval "kind=\$kind_$i"
    if [ "$kind" = main ]; then
      start "$i"
      (
        trap - TERM INT HUP QUIT USR1 USR2
        look_after "$i"
      ) </dev/null >/dev/null 2>&1 &
    fi
    i=$((i + 1))
  done
  await
}

sessions=
began_all=$(date +%s)
now=$began_all
if [ -n "$inside" ]; then
  get "$pod/began"
  began_all=$got
else
  rm -rf "$pod"
  trap wipe EXIT
  mkdir -p "$pod/s" "$pod/volumes" "$pod/work" "$pod/images" "$pod/before" || exit 125
  put "$pod/began" "$began_all"
  # Room for the state of the containers when they have filled the disk.
  dd if=/dev/zero of="$pod/reserve" bs=65536 count=4 2>/dev/null
fi
ooms=$(oom_kills)
begun self
runner=$il_begun
unset THRESHER_POD_PREFIX THRESHER_POD_INSIDE
trap term TERM INT HUP QUIT USR2
trap 'woken=yes' USR1
if [ -n "$inside" ]; then
  put "$pod/inside" "$runner"
  [ -f "$payload/job-script" ] || clean_environment
  know_images
else
  begin_states
  report
  unpack_volumes || finish_for NoVolumes 'the files of the volumes cannot be written: is the disk full?'
  [ "$prefixed" = 0 ] || finish_for PrefixFailed "the operator's commandPrefix ended with code $prefixed"
  run_before
  if [ ! -f "$payload/job-script" ]; then
    find_runtime
    # Pulls need the proxy of the machine, and its certificates.
    pull_images
    clean_environment
  fi
  [ ! -f "$pod/before/mesh.sh" ] || run_in_mesh
fi
if [ -f "$payload/job-script" ]; then run_job_script; else run_containers; fi
finish NotStarted ''
