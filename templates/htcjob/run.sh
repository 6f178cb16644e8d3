#!/bin/sh
# Runs one job of an HTCJob on the machine of its worker, and ends with the exit status of the job's script.
#
#   run.sh RUNTIME IMAGE PLACE NUMBER VARIABLES BINDS [BIND]... COMMAND...
#
#   RUNTIME    apptainer or singularity: COMMAND runs in IMAGE. container or none: it runs where this script runs
#   PLACE      the directory of the machine that IMAGE must be in, if it is a path; else "-"
#   VARIABLES  how many variables of the user there are: HTCJOB_VARIABLE_0 has the text "NAME=VALUE", and so on
#   BINDS      how many directories of the machine follow; the image gets those that exist
#
# COMMAND gets the script's path and the number of the job as its last arguments. No shell reads a value of the user: each one stays
# one word from the resource to the program.
set -u

fail() {
  echo "thresher: the job cannot be run: $1" >&2
  exit "${2:-125}"
}

[ $# -ge 7 ] || fail "run.sh got $# arguments"
runtime=$1
image=$2
place=$3
number=$4
variables=$5
binds=$6
shift 6
payload=${THRESHER_PAYLOAD_DIR:-}
[ -f "$payload/script.sh" ] || fail "THRESHER_PAYLOAD_DIR has no script.sh"

# HTCondor gives a job a scratch directory. Elsewhere the job gets a directory for itself.
own=
if [ -n "${_CONDOR_SCRATCH_DIR:-}" ] && [ -w "$_CONDOR_SCRATCH_DIR" ]; then
  work=$_CONDOR_SCRATCH_DIR
else
  work=$(mktemp -d "${TMPDIR:-/tmp}/htcjob.XXXXXX") || fail "no directory for its files"
  own=$work
fi
# By their own names: a link on the way to them would make two directories of one.
work=$(cd -P -- "$work" && pwd -P) && payload=$(cd -P -- "$payload" && pwd -P) || fail "its directory cannot be entered"
# The files that were there before are not of the script's making. No name has a slash.
output=${THRESHER_OUTPUT:-}
packed=
before=/
for path in "$work"/* "$work"/.[!.]* "$work"/..?*; do
  before=$before${path##*/}/
done
# The directory of the script. In an image it has one of its own, in which nothing is that this script reads, writes or runs, and nothing
# of HTCondor's: outside of the image all jobs have one owner, and the script leaves what it likes.
room=$work
case $runtime in
  apptainer | singularity)
    room=$work/thresher-job
    # One that was killed before may have left links in it.
    rm -rf "$room"
    mkdir "$room" || fail "its directory cannot be made anew"
    ;;
esac
mkdir -p "$room" && cp "$payload/script.sh" "$room/script.sh" && chmod 755 "$room/script.sh" || fail "no room for its script"
# The output that HTCondor brings back holds no script of ours, and a machine keeps no directory.
clean() {
  rm -f "$room/script.sh"
  [ -z "$packed" ] || rm -rf "$packed"
  [ -z "$own" ] || rm -rf "$own"
}

tool=
case $runtime in
  apptainer | singularity)
    for name in "$runtime" apptainer singularity; do
      tool=$(command -v "$name") && break
    done
    [ -n "$tool" ] || {
      clean
      fail "neither apptainer nor singularity is on this machine ($(uname -n))" 127
    }
    command -v find >/dev/null && command -v readlink >/dev/null || {
      clean
      fail "neither find nor readlink is on this machine ($(uname -n)): one of them is missing" 127
    }
    # A link in a directory of images may lead to the whole machine, and may be another one when the image is opened.
    case $image in
      /* | ./*)
        case $image in /*) ;; *) place=$work image=$work/$image ;; esac
        # "-" is another directory to cd.
        top=-
        case $place in /*) top=$(cd -P -- "$place" 2>/dev/null && pwd -P) || top=- ;; esac
        to=$(readlink -f -- "$image") && [ -e "$to" ] || to=
        case $to in "${top%/}"/?*) ;; *)
          clean
          fail "the image $image is not there, or leads out of $place" 255
          ;;
        esac
        image=$to
        ;;
    esac
    # They would end the path of a bind.
    case $work$payload in *[,:]*)
      clean
      fail "the directory $work has a comma or a colon in its path"
      ;;
    esac
    inside=/htc_run
    ;;
  *) inside=$work ;;
esac

# The arguments are "BIND... COMMAND...". Each step takes words from the front and puts words at the end.
words=$(($# - binds))
while [ "$binds" -gt 0 ]; do
  bind=$1
  shift
  [ -z "$tool" ] || [ ! -e "$bind" ] || set -- "$@" --bind "$bind"
  binds=$((binds - 1))
done
[ -z "$tool" ] || set -- "$@" "$image"
while [ "$words" -gt 0 ]; do
  set -- "$@" "$1"
  shift
  words=$((words - 1))
done
set -- "$@" "$inside/script.sh" "$number"

secrets=$payload/secrets
if [ -n "$tool" ]; then
  [ ! -d "$secrets" ] || set -- --bind "$secrets:/htc_secrets:ro" "$@"
  # What the template of the queue brought is beside the script, where it cannot be changed.
  bound=/
  for path in "$work"/* "$work/.job.ad" "$work/.machine.ad"; do
    name=${path##*/}
    case $payload/ in "$path"/*) continue ;; esac
    case $name in thresher-* | _condor_* | script.sh) continue ;; esac
    case $name in *[,:]*)
      echo "thresher: $name is not in the image: its name has a comma or a colon" >&2
      continue
      ;;
    esac
    bound=$bound$name/
    if [ -d "$path" ]; then mkdir "$room/$name"; elif [ -f "$path" ]; then : >"$room/$name"; else continue; fi
    set -- --bind "$path:$inside/$name:ro" "$@"
  done
  set -- "$tool" exec --contain --ipc --pid --pwd "$inside" --bind "$room:$inside" "$@"
  secrets=/htc_secrets
  # What one job pulled is not the image of another, unless the administrator gives them a cache.
  [ -n "${APPTAINER_CACHEDIR:-}${SINGULARITY_CACHEDIR:-}" ] || export APPTAINER_DISABLE_CACHE=1 SINGULARITY_DISABLE_CACHE=1
  [ -n "${APPTAINER_TMPDIR:-}${SINGULARITY_TMPDIR:-}" ] || export "APPTAINER_TMPDIR=$work" "SINGULARITY_TMPDIR=$work"
  # No variable is for a shell.
  export APPTAINER_NO_EVAL=1 SINGULARITY_NO_EVAL=1
fi
# "a=b" is a variable to env, and a program to exec.
case $1 in *=*) set -- sh -c 'exec "$@"' sh "$@" ;; esac

# The program gets the user's variables, and this script does not. Nor does the runtime, which is outside of the image, and may be a script:
# it would run what BASH_ENV names, and load what LD_PRELOAD does.
return=$(printf '\r')
set -- "JOB_NAME=${JOB_NAME:-}" "TEMP_DIR=$inside" "HTCJOB_SECRETS=$secrets" "$@"
while [ "$variables" -gt 0 ]; do
  variables=$((variables - 1))
  # The name has only digits behind the underscore.
  eval "variable=\$HTCJOB_VARIABLE_$variables; unset HTCJOB_VARIABLE_$variables"
  if [ -z "$tool" ]; then
    set -- "$variable" "$@"
    continue
  fi
  # The shell in apptainer, which reads them, takes "\r\n" for "\n".
  case $variable in
    *"$return"*)
      variable=$(printf '%s.' "$variable" | LC_ALL=C sed "s/$return\$/$return$return/")
      variable=${variable%.}
      ;;
  esac
  set -- "APPTAINERENV_$variable" "SINGULARITYENV_$variable" "$@"
done

cd "$work" || fail "the directory $work cannot be entered"
# HTCondor ends this script, and so this script ends the program.
ended=
# A signal of the job to its own group, `kill 0`, reaches programs outside of its image that are in that group, and would end this script.
set -- env "$@"
[ -z "$tool" ] || ! command -v setsid >/dev/null || set -- setsid "$@"
"$@" &
child=$!
trap 'ended=yes; kill -TERM "$child" 2>/dev/null' TERM INT HUP
wait "$child"
code=$?
while [ -n "$ended" ] && kill -0 "$child" 2>/dev/null; do
  wait "$child"
  code=$?
done
trap - TERM INT HUP

# Says why there is no output: the operator shows the line in the status of the HTCJob.
no_output() {
  echo "thresher: $1" >&2
  [ -z "$output" ] || echo "thresher: $1" >"$output"
  output=
}

# A link of the script's leads anywhere: those out of its directory go, before this script, or HTCondor, follows one into the files of
# another job. A pipe would let it wait for ever.
drop_links() {
  # A directory that may not be listed would hide what is in it.
  find "$room" -type d ! -perm -700 -exec chmod u+rwx {} \; &&
    find "$room" ! -type d ! -type f ! -type l -exec rm -f -- {} + &&
    find "$room" -type l -exec sh -c '
      room=$1
      bad=0
      shift
      for link; do
        to=$(readlink -f -- "$link") || to=
        case $to in "$room"/?*) ;; *) rm -f -- "$link" || bad=1 ;; esac
      done
      exit "$bad"' sh "$room" {} +
}
[ -z "$tool" ] || drop_links || {
  no_output "the directory of the job cannot be cleaned of links, so nothing of it is kept"
  rm -rf "$room"
}

# Only a directory that its user may write can be moved, and tar reads only one that may be listed: caches and copies of /cvmfs are read-only.
open_up() {
  find "$@" -type d ! -perm -700 -exec chmod u+rwx {} \; 2>/dev/null
}

# Moves paths of the work directory into the directory that is packed.
take() {
  open_up "$@"
  mv -- "$@" "$packed/" 2>/dev/null || lost=yes
}

take_listed() {
  while IFS= read -r name; do
    # What the template of the queue brought is not in the directory of a script that has an image.
    from=$room
    case ${bound:-} in */"${name%%/*}"/*) from=$work ;; esac
    place=$(cd -P -- "$from/$(dirname "./$name")" 2>/dev/null && pwd -P) || place=
    case $place/ in "$from"/*) ;; *) place= ;; esac
    if [ -z "$place" ] || { [ ! -e "$from/$name" ] && [ ! -L "$from/$name" ]; }; then
      echo "thresher: the job left no $name" >&2
      continue
    fi
    [ -w "$place" ] || chmod u+rwx "$place" || lost=yes
    open_up "$from/$name"
    mkdir -p "$packed/./$(dirname "./$name")" && mv -- "$from/$name" "$packed/$name" || lost=yes
  done <"$payload/output-files"
}

take_all() {
  set --
  for path in "$room"/* "$room"/.[!.]* "$room"/..?*; do
    name=${path##*/}
    [ -e "$path" ] || [ -L "$path" ] || continue
    case $before in */"$name"/*) continue ;; esac
    case $name in script.sh | "${packed##*/}" | .update.ad* | .job.ad | .machine.ad) continue ;; esac
    set -- "$@" "$path"
    [ $# -lt 500 ] || { take "$@" && set --; }
  done
  [ $# -eq 0 ] || take "$@"
}

# Leaves an archive of the files of the job at the path that HTCondor brings back.
pack() {
  command -v tar >/dev/null || {
    no_output "there is no tar on the machine of the job, or in its image"
    return
  }
  lost=
  packed=$(mktemp -d "$work/.htcjob-output.XXXXXX") && chmod 755 "$packed" || {
    no_output "no room for the output of the job"
    return
  }
  if [ -f "$payload/output-files" ]; then take_listed; else take_all; fi
  for name in _condor_stdout _condor_stderr; do
    [ ! -f "$work/$name" ] || { rm -rf "${packed:?}/$name" && cp "$work/$name" "$packed/$name"; } || lost=yes
  done
  [ -z "$lost" ] || {
    no_output "files of the job cannot be packed: they are not its own, or there is no room"
    return
  }
  if (cd "$packed" && ulimit -f "$HTCJOB_OUTPUT_BLOCKS" && exec tar -cf "$output.new" .) 2>"$output.why"; then
    mv -f "$output.new" "$output"
    rm -f "$output.why"
  else
    reason=$(head -c 200 "$output.why" | head -n 1)
    rm -f "$output.new"
    no_output "the output of the job cannot be packed, or is larger than $((HTCJOB_OUTPUT_BLOCKS / 2)) kB: $reason"
  fi
}

# A job that was told to end has no time for that.
[ -z "$output" ] || [ -n "$ended" ] || {
  rm -f "$room/script.sh"
  pack
}
clean

# A job that was told to end has no time for messages.
[ -n "$ended" ] || [ ! -f "$payload/event" ] || sh "$payload/send-event.sh" "$code"
exit "$code"
