# shellcheck shell=sh
# Part of the runner of a Pod (run.sh): probes and hooks inside of a container that runs, among its processes.
#
# An apptainer without setuid makes a user namespace, which its user may enter: nsenter does it in milliseconds, with the directory of the
# container's program. That program has its environment as it likes, and programs of the machine do what theirs says: so only a shell of
# the image, which the container's own /bin/sh is, reads it. Elsewhere a probe is a second container of the same image (container.sh), with
# the same /tmp and volumes.

# What that shell does: it takes the environment from descriptor 3, a line for each variable as printf's %b writes it, and becomes the command.
il_opener='
unset PATH PWD OLDPWD SHLVL
il_odd=
while IFS= read -r il_line; do
  case $il_line in
    *\\*)
      il_line=$(printf "%b." "$il_line")
      il_line=${il_line%.}
      ;;
  esac
  case ${il_line%%=*} in
    "$il_line" | *%%) ;;
    # No shell can export these, or it has its own of that name: a program does.
    "" | *[!A-Za-z0-9_]* | [0-9]* | il_* | UID | EUID | GID | PPID | BASH* | SHELLOPTS | IFS | OPT* | _ | RANDOM | SRANDOM | SECONDS | GROUPS | HISTCMD | LINENO | DIRSTACK | FUNCNAME | PIPESTATUS | EPOCH* | COMP_*)
      il_odd=yes
      set -- "$il_line" "$@"
      ;;
    *) export "$il_line" ;;
  esac
done <&3
exec 3<&-
# A name may look like an option.
[ -z "$il_odd" ] || set -- env -- "$@"
exec "$@"'

# find_program NUMBER: gives il_program the first process of the container's program. 1: there is no way in; 2: not yet; 3: the machine is so
# busy that nothing can be said.
find_program() {
  il_nsenter=$(command -v nsenter) || return 1
  # A kernel may be built without it.
  [ -r "/proc/$$/task/$$/children" ] || return 1
  get "$pod/s/$1/pid"
  [ -n "$got" ] || return 2
  if ! is_starter "$got"; then
    # It is a process of this script at first. Another program in the place of apptainer has its own ways.
    case $(tr '\000' ' ' 2>/dev/null <"/proc/$got/cmdline") in *run.sh* | setsid\ * | env\ *) return 2 ;; esac
    return 1
  fi
  first_child "$got" || return 2
  case $(readlink "/proc/$il_child/ns/mnt") in '' | "$(readlink /proc/self/ns/mnt)") return 2 ;; esac
  [ "$(readlink "/proc/$il_child/ns/user")" != "$(readlink /proc/self/ns/user)" ] || return 1
  if is_starter "$il_child"; then first_child "$il_child" || return 2; fi
  ! is_starter "$il_child" || return 2
  il_program=$il_child
  (inside_of "$il_program" 5 /bin/sh -c :) </dev/null 2>/dev/null
  # `timeout` had to kill it.
  case $? in 0) return 0 ;; 137) return 3 ;; esac
  return 1
}

# inside_of PID LIMIT COMMAND...: becomes the command, among the processes of container process PID and in its files, with an end after LIMIT
# seconds.
inside_of() {
  il_pid=$1
  il_limit=$2
  shift 2
  begin_session env -i "PATH=$PATH" timeout -s KILL "$il_limit" "$il_nsenter" -t "$il_pid" --user --preserve-credentials --mount --pid --ipc --root --wd -- "$@"
}

first_child() {
  il_child=
  # It has no end of a line.
  { read -r il_child _ <"/proc/$1/task/$1/children"; } 2>/dev/null
  [ -n "$il_child" ]
}

# Is it a process of apptainer itself?
is_starter() {
  il_comm=
  { read -r il_comm <"/proc/$1/comm"; } 2>/dev/null
  case $il_comm in appinit | sinit | starter | starter-suid | apptainer | singularity) return 0 ;; esac
  return 1
}

# Waits until there is a way into container $1, or surely none, and gives il_program; for $2 tenths of a second at most.
way_in() {
  il_tries=0
  while runs "$1"; do
    find_program "$1"
    case $? in
      0) return 0 ;;
      1) return 1 ;;
      2) il_tries=$((il_tries + 1)) ;;
      3) il_tries=$((il_tries + 50)) ;;
    esac
    [ "$il_tries" -lt "$2" ] || return 1
    sleep 0.1
  done
  return 1
}

# enter NUMBER ACTION LIMIT: becomes the command of the action, inside of process il_program, with an end after LIMIT seconds.
enter() {
  il_want=word-$2
  il_limit=$3
  il_environ=$pod/work/$1.$il_want.environ
  il_words=$payload/c$1
  set --
  while IFS= read -r il_line; do
    case $il_line in
      "$il_want "*)
        decode "${il_line#* }"
        set -- "$@" "$il_decoded"
        ;;
    esac
  done <"$il_words"
  il_newline=$(printf '\001')
  tr '\n\000' '\001\n' <"/proc/$il_program/environ" | LC_ALL=C sed "s/\\\\/\\\\\\\\/g; s/$il_newline/\\\\n/g" >"$il_environ" || return 125
  inside_of "$il_program" "$il_limit" /bin/sh -c "$il_opener" sh "$@" 3<"$il_environ"
}
