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
exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
# A name may look like an option.
[ -z "$il_odd" ] || set -- env -- "$@"
exec "$@"'

# find_program NUMBER ACTION: opens the way into the first process of the container's program: its namespaces, root and directory on
# descriptors 4 to 9, and its environment as file il_environ. 1: there is no way in; 2: not yet; 3: the machine is so busy that nothing can
# be said.
#
# All jobs of a pool may have one owner, and any process that a container ends may have its pid given to one of another user's container.
# So what is judged is an open directory of /proc, which never is another process's, and nothing is entered but what was opened by it.
find_program() {
  il_nsenter=$(command -v nsenter) || return 1
  # A kernel may be built without it.
  [ -r "/proc/$$/task/$$/children" ] || return 1
  get "$pod/s/$1/pid"
  il_starter=$got
  [ -n "$il_starter" ] && is_there "$il_starter" || return 2
  if ! is_starter "${il_starter%:*}"; then
    # It is a process of this script at first. Another program in the place of apptainer has its own ways.
    case $(tr '\000' ' ' 2>/dev/null <"/proc/${il_starter%:*}/cmdline") in '' | *run.sh* | setsid\ * | env\ *) return 2 ;; esac
    # It may have become apptainer between the two looks.
    ! is_starter "${il_starter%:*}" || return 2
    return 1
  fi
  il_own=$(program_of "/proc/${il_starter%:*}")
  [ -n "$il_own" ] || return 2
  open_child "$il_starter" || return 2
  # What a process is called is the user's word: apptainer's init is known by its file.
  if [ "$(program_of "$il_fd/3")" = "$il_own" ]; then
    il_init=$il_opened
    open_child "$il_init" || return 2
    # It may have become the program in between, which has children of its own.
    [ "$(program_of "/proc/${il_init%:*}")" = "$il_own" ] && is_there "$il_init" || return 2
  fi
  case $(program_of "$il_fd/3") in '' | "$il_own") return 2 ;; esac
  # It becomes apptainer's starter from the program that a user calls: what it was before tells nothing of its children.
  [ "$(program_of "/proc/${il_starter%:*}")" = "$il_own" ] || return 2
  il_environ=$pod/work/$1.$2.environ
  il_newline=$(printf '\001')
  { tr '\n\000' '\001\n' <"$il_fd/3/environ" | LC_ALL=C sed "s/\\\\/\\\\\\\\/g; s/$il_newline/\\\\n/g" >"$il_environ"; } 2>/dev/null &&
    command exec 4<"$il_fd/3/ns/user" 5<"$il_fd/3/ns/mnt" 6<"$il_fd/3/ns/pid" 7<"$il_fd/3/ns/ipc" 8<"$il_fd/3/root" 9<"$il_fd/3/cwd" || return 2
  # By it the container would see the processes of the machine.
  exec 3<&-
  [ "$(readlink "$il_fd/6")" != "$(readlink /proc/self/ns/pid)" ] || return 2
  [ "$(readlink "$il_fd/5")" != "$(readlink /proc/self/ns/mnt)" ] || return 2
  [ "$(readlink "$il_fd/4")" != "$(readlink /proc/self/ns/user)" ] || return 1
  (inside_of 5 /bin/sh -c :) </dev/null 2>/dev/null
  # `timeout` had to kill it.
  case $? in 0) return 0 ;; 137) return 3 ;; esac
  return 1
}

close_way() {
  exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
}

# Where a process, and each program that it starts, finds what it has open.
il_fd=/proc/self/fd

# inside_of LIMIT COMMAND...: becomes the command, in the way that find_program opened, with an end after LIMIT seconds.
inside_of() {
  il_limit=$1
  shift
  begin_session env -i "PATH=$PATH" timeout -s KILL "$il_limit" "$il_nsenter" --user="$il_fd/4" --preserve-credentials --mount="$il_fd/5" --pid="$il_fd/6" --ipc="$il_fd/7" --root="$il_fd/8" --wd="$il_fd/9" -- "$@"
}

# open_child PID:STARTTIME: opens the first child of a process on descriptor 3, and gives il_opened its PID:STARTTIME. The process was
# there when its child was looked at, and after that: so it is the parent.
open_child() {
  il_child=
  # It has no end of a line.
  { read -r il_child _ <"/proc/${1%:*}/task/${1%:*}/children"; } 2>/dev/null
  [ -n "$il_child" ] || return 1
  # Without "command" a shell ends where it cannot open.
  { command exec 3<"/proc/$il_child"; } 2>/dev/null && stat_of "$il_fd/3" || return 1
  il_opened=$il_stat_pid:$started
  [ "$parent" = "${1%:*}" ] && is_there "$1"
}

# Prints which file a process runs, of which its directory in /proc is $1.
program_of() {
  stat -L -c %d:%i "$1/exe" 2>/dev/null
}

# Is it a process of apptainer itself? Only of the process that this script started its name tells that.
is_starter() {
  il_comm=
  { read -r il_comm <"/proc/$1/comm"; } 2>/dev/null
  case $il_comm in appinit | sinit | starter | starter-suid | apptainer | singularity) return 0 ;; esac
  return 1
}

# Waits until there is a way into container $1 for action $2, or surely none, and leaves it open; for $3 tenths of a second at most.
way_in() {
  il_tries=0
  while runs "$1"; do
    find_program "$1" "$2"
    il_found=$?
    [ "$il_found" = 0 ] || close_way
    case $il_found in
      0) return 0 ;;
      1) return 1 ;;
      2) il_tries=$((il_tries + 1)) ;;
      3) il_tries=$((il_tries + 50)) ;;
    esac
    [ "$il_tries" -lt "$3" ] || return 1
    sleep 0.1
  done
  return 1
}

# enter NUMBER ACTION LIMIT: becomes the command of the action, in the way that way_in opened, with an end after LIMIT seconds.
enter() {
  il_want=word-$2
  il_limit=$3
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
  inside_of "$il_limit" /bin/sh -c "$il_opener" sh "$@" 3<"$il_environ"
}
