# shellcheck shell=sh
# Part of the runner of a Pod (run.sh): one container, from its start to its end.

# Becomes the program of container $1, or its action $2 with an end after $3 seconds. The names il_... are no variables of a user:
# variables of the container are exported here.
within() {
  il_number=$1
  il_want=word
  [ "$2" = main ] || il_want=word-$2
  il_limit=$3
  eval "il_image=\$image_$il_number"
  il_run=exec
  get "$pod/s/$1/cwd"
  il_cwd=${got:-/}
  il_placed=
  set --
  while IFS= read -r il_line; do
    il_value=${il_line#* }
    case ${il_line%% *} in
      run) il_run=$il_value ;;
      cwd)
        decode "$il_value"
        il_cwd=$il_decoded
        ;;
      option)
        decode "$il_value"
        set -- "$@" "$il_decoded"
        ;;
      bind)
        fields "$il_value"
        place "$il_2" "$il_3" || return 125
        set -- "$@" --bind "$il_place:$il_4:$il_1"
        ;;
      says)
        decode "$il_value"
        [ "$il_want" != word ] || set -- "$@" --bind "$pod/s/$il_number/said:$il_decoded:rw"
        ;;
      "$il_want")
        [ -n "$il_placed" ] || [ "$il_run" = host ] || set -- "$@" "$il_image"
        il_placed=yes
        decode "$il_value"
        set -- "$@" "$il_decoded"
        ;;
    esac
  done <"$payload/c$il_number"
  if [ "$il_run" = host ]; then
    [ "$il_cwd" = / ] && il_cwd=$pod/work/$il_number
    cd "$il_cwd" || return 125
    case $1 in *=*) set -- sh -c 'exec "$@"' sh "$@" ;; esac
  else
    [ -n "$il_placed" ] || set -- "$@" "$il_image"
    [ "$il_want" = word ] || il_run=exec
    # The log is the container's: apptainer writes nothing into it but errors.
    set -- "$tool" --silent "$il_run" --contain --ipc --pid --pwd "$il_cwd" --workdir "$pod/work/$il_number" "$@"
    # Neither an image's variables nor its arguments are for a shell.
    export APPTAINER_NO_EVAL=1 SINGULARITY_NO_EVAL=1
    # With capabilities a container could write what it mounts for reading: whether it has them is known where the Pod was judged, by options.
    for il_power in FAKEROOT ADD_CAPS KEEP_PRIVS ALLOW_SETUID OCI; do unset "APPTAINER_$il_power" "SINGULARITY_$il_power"; done
    cd "$work" || return 125
  fi
  [ "$il_limit" = 0 ] || set -- timeout -s KILL "$il_limit" "$@"
  unset OLDPWD
  il_odd=
  while IFS= read -r il_line; do
    decode "${il_line#* }"
    case $il_run:${il_decoded%%=*} in
      # apptainer takes it from the option --home alone.
      exec:HOME | run:HOME) ;;
      # Functions of bash: apptainer, where it is a script, would run them outside of the image.
      exec:BASH_FUNC_* | run:BASH_FUNC_*)
        il_odd=yes
        for_apptainer
        set -- "APPTAINERENV_$il_decoded" "SINGULARITYENV_$il_decoded" "$@"
        ;;
      # No shell can export these, or apptainer loses them on the other way: a program does.
      *:*[!A-Za-z0-9_]* | *:[0-9]* | *:il_* | *:UID | *:EUID | *:GID | host:PPID | host:BASH* | host:SHELLOPTS | host:IFS | host:OPT* | host:_ | host:RANDOM | host:SRANDOM | host:SECONDS | host:GROUPS | host:HISTCMD | host:DIRSTACK | host:FUNCNAME | host:PIPESTATUS | host:EPOCH* | host:COMP_*)
        il_odd=yes
        set -- "$il_decoded" "$@"
        ;;
      host:*) export "$il_decoded" ;;
      # They are for the image: this shell, and apptainer outside of it, would do what they say.
      *)
        for_apptainer
        export "APPTAINERENV_$il_decoded" "SINGULARITYENV_$il_decoded"
        ;;
    esac
  done <"$payload/e$il_number"
  # A name may look like an option.
  [ -z "$il_odd" ] || set -- env -- "$@"
  begin_session "$@"
}

# Makes il_decoded what apptainer gives to its image as it was: the shell in apptainer, which reads it, takes "\r\n" for "\n".
for_apptainer() {
  il_return=$(printf '\r')
  case $il_decoded in *"$il_return"*) ;; *) return 0 ;; esac
  il_decoded=$(printf '%s.' "$il_decoded" | LC_ALL=C sed "s/$il_return\$/$il_return$il_return/")
  il_decoded=${il_decoded%.}
}

# Gives il_place the directory or file of the machine that a mount is for. A container may have put a link into an emptyDir: no mount
# goes by one. It could lead out of the volumes, or to what another container can change between this look and the mount.
place() {
  if [ "$1" = host ]; then
    il_place=
    leads host-path "$2" && il_place=$il_real && return 0
    if [ -e "$2" ]; then why_not "$2 leads out of the directories of this machine that may be mounted"; else why_not "this machine has no $2"; fi
    return 1
  fi
  il_place=$pod/volumes/$2
  il_root=$(cd -P "$pod/volumes" && pwd -P)
  # The directory that is there already: a new one must not come about behind a link.
  il_parent=$il_place
  while [ ! -d "$il_parent" ] && [ "$il_parent" != "$pod/volumes" ]; do il_parent=${il_parent%/*}; done
  il_real=$(cd -P "$il_parent" 2>/dev/null && pwd -P) || il_real=
  if [ "$il_real" = "$il_root${il_parent#"$pod/volumes"}" ]; then
    [ -e "$il_place" ] || [ -h "$il_place" ] || mkdir -p "$il_place" 2>/dev/null
    [ ! -h "$il_place" ] && [ -e "$il_place" ] && return 0
  fi
  why_not "the path $2 of its volume is, or goes by, a link, or it cannot be made"
  return 1
}

# Says why container il_number cannot start, in its log and in its state.
why_not() {
  echo "thresher: $1" >&2
  [ "$il_want" != word ] || put "$pod/s/$il_number/message" "$(printf '%s' "$1" | escaped_text 500)"
}

# Runs container $1 and writes down its end.
supervise() {
  dir=$pod/s/$1
  eval "name=\$name_$1 from=\${from_$1:-host}"
  mkdir -p "$pod/work/$1"
  : >"$dir/said"
  (
    trap - TERM INT HUP QUIT USR1 USR2
    begun self
    put "$dir/pid" "$il_begun"
    wake
    if [ -f "$payload/job-script" ]; then
      export "workingPath=$pod/work/$1" "SANDBOX=$pod/work/$1"
      cd "$pod/work/$1" && begin_session "$pod/job-script"
      exit 126
    fi
    within "$1" main 0
  ) </dev/null >>"$work/$name.log" 2>&1 &
  child=$!
  # A signal to the whole group is for the runner alone.
  trap '' TERM INT HUP QUIT USR1 USR2
  begun "$child"
  wait "$child"
  code=$?
  # Its pid may be given again from here on.
  rm -f "$dir/pid"
  end_left '' "$il_begun"
  reason=Completed
  [ "$code" = 0 ] || reason=Error
  [ "$code" != 137 ] || [ "$(oom_kills)" = "$ooms" ] || reason=OOMKilled
  if [ -f "$dir/ending" ]; then
    get "$dir/ending"
    reason=$got
    # A container that was told to end has not done its work.
    [ "$code" != 0 ] || code=143
  fi
  [ "$code" != 255 ] || [ -f "$dir/message" ] || not_started "$1"
  [ -f "$dir/message" ] || last_words "$1"
  ended "$1" "$code" "$reason"
  wake
}

# Gives container $1 apptainer's own sentence, where that could not start it.
not_started() {
  line=$(tail -n 1 "$work/$name.log")
  case $line in 'FATAL: '*) put "$dir/message" "$(printf '%s' "$line" | escaped_text 1000)" ;; esac
}

# The message that container $1 left at its terminationMessagePath, or the end of its log where it asks for that. All messages of a Pod
# have 12 KiB together, as in Kubernetes.
last_words() {
  most=$((12288 / count))
  [ "$most" -le 4096 ] || most=4096
  said=$(escaped_text "$most" <"$dir/said")
  if [ -z "$said" ] && [ "$code" != 0 ] && has_line "$1" says-log; then
    [ "$most" -le 2048 ] || most=2048
    said=$(tail -n 80 "$work/$name.log" | tail -c "$most" | escaped_text "$most")
  fi
  [ -z "$said" ] || put "$dir/message" "$said"
}

# How often the kernel killed a process of this job for its memory.
oom_kills() {
  kills=0
  while IFS=: read -r _ controllers group; do
    case ,$controllers, in
      ,,) events=/sys/fs/cgroup$group/memory.events ;;
      *,memory,*) events=/sys/fs/cgroup/memory$group/memory.oom_control ;;
      *) continue ;;
    esac
    [ -r "$events" ] || continue
    while read -r event number; do
      [ "$event" != oom_kill ] || kills=$number
    done <"$events"
  done </proc/self/cgroup
  echo "$kills"
} 2>/dev/null

# ended NUMBER CODE REASON [MESSAGE]
ended() {
  put "$pod/s/$1/finishedAt" "$(stamp)"
  put "$pod/s/$1/reason" "$3"
  [ $# -lt 4 ] || put "$pod/s/$1/message" "$4"
  put "$pod/s/$1/code" "$2"
}
