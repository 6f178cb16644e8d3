# shellcheck shell=sh
# Part of the runner of a Pod (run.sh): the environment of containers, the program that runs them, and their images.

# Takes the variables of the machine away, but for those of its GPUs and those that apptainer reads itself.
clean_environment() {
  # A value may have lines that look like variables.
  for variable in $(env -0 | tr '\n\000' ' \n' | while IFS= read -r line; do
    variable=${line%%=*}
    case $variable in
      BASH_FUNC_*%%) echo "$variable" ;;
      '' | *[!A-Za-z0-9_]* | [0-9]*) ;;
      PATH | HOME | USER | LOGNAME | PWD | OLDPWD | SHLVL | _ | PPID | UID | EUID | SHELLOPTS | BASHOPTS | BASH_VERSINFO) ;;
      APPTAINER_* | SINGULARITY_* | CUDA_VISIBLE_DEVICES | GPU_DEVICE_ORDINAL | NVIDIA_VISIBLE_DEVICES | ROCR_VISIBLE_DEVICES | HIP_VISIBLE_DEVICES) ;;
      # The local backend knows processes of a worker by it.
      THRESHER_WORKER_DIR) ;;
      *) echo "$variable" ;;
    esac
  done); do
    case $variable in
      BASH_FUNC_*%%)
        variable=${variable#BASH_FUNC_}
        unset -f "${variable%%%*}"
        ;;
      *) unset "$variable" ;;
    esac
  done
  # Lengths of values are bytes, and messages of programs are English.
  LC_ALL=C
}

find_runtime() {
  tool=
  needs=
  i=0
  while [ "$i" -lt "$count" ]; do
    eval "from=\$from_$i"
    [ "$from" = host ] || needs=yes
    i=$((i + 1))
  done
  [ -n "$needs" ] || return 0
  for one in "$runtime" apptainer singularity; do
    tool=$(command -v "$one") && break
  done
  [ -n "$tool" ] || finish NoRuntime "neither apptainer nor singularity is on this machine"
  case $pod in *[,:\\]*) finish NoRuntime "the scratch directory has a comma, a colon or a backslash in its path" ;; esac
  put "$pod/tool" "$tool"
}

# Gives each container its image as a path: a file that was pulled, or one that is there.
pull_images() {
  i=0
  while [ "$i" -lt "$count" ]; do
    eval "from=\$from_$i uri=\$image_$i cache=\$cache_$i name=\$name_$i"
    case $from in
      same) eval "image_$i=\$image_$uri" ;;
      path)
        leads image-path "$uri" || {
          why="this machine has no image $uri"
          [ ! -e "$uri" ] || why="the image $uri leads out of the directories with images of this machine"
          ended "$i" 1 ErrImagePull "$(printf '%s' "$why" | escaped_text 500)"
          finish_for NotStarted "the image of container $name cannot be used"
        }
        eval "image_$i=\$il_real"
        ;;
      remote)
        target=$pod/images/$i.sif
        if [ "$cache" != - ] && [ -f "$cache" ]; then
          target=$cache
        else
          pull "$i" "$target" "$uri" || {
            cat "$pod/pull.log" >>"$work/$name.log"
            why=$(tail -n 1 "$pod/pull.log" | escaped_text 500)
            [ -n "$ending" ] || ended "$i" 1 ErrImagePull "the image cannot be pulled: $why"
            finish_for NotStarted "the image of container $name cannot be pulled"
          }
          [ "$cache" = - ] || keep_image "$target" "$cache"
        fi
        eval "image_$i=\$target"
        ;;
    esac
    eval "put \"\$pod/s/$i/image\" \"\$image_$i\""
    if [ "$from" = same ]; then
      get "$pod/s/$uri/cwd"
    else
      eval "image_directory \"\$image_$i\""
    fi
    put "$pod/s/$i/cwd" "$got"
    i=$((i + 1))
  done
}

# keep_image FILE CACHE: two jobs may pull the same image, on two machines: the last one's file stays. A job that was killed left its own.
keep_image() {
  ! has find || find "${2%/*}" -maxdepth 1 -name "${2##*/}.new.*" -mtime +1 -exec rm -f {} + 2>/dev/null
  new=$(mktemp "$2.new.XXXXXX" 2>/dev/null) || return 0
  cp "$1" "$new" 2>/dev/null && chmod 644 "$new" && mv "$new" "$2" 2>/dev/null || rm -f "$new"
}

# Gives got the working directory of the image in file $1: apptainer keeps what the registry said of it, and does not use it.
image_directory() {
  got=
  # A link may have the name.
  case "$1|$uri" in *.sif\|* | *.sif) ;; *) return ;; esac
  for part in $("$tool" sif list "$1" 2>/dev/null | while IFS=' |' read -r number _ _ _ type; do
    [ "$type" != JSON.Generic ] || echo "$number"
  done); do
    config=$("$tool" sif dump "$part" "$1" 2>/dev/null)
    case $config in
      *'"WorkingDir":"/'*)
        got=${config#*'"WorkingDir":"'}
        got=${got%%\"*}
        ;;
    esac
  done
  case $got in *[\\,:]*) got= ;; esac
}

# pull NUMBER TARGET URI
pull() {
  (
    trap - TERM INT HUP QUIT USR1 USR2
    if [ -f "$payload/l$1" ]; then
      {
        IFS= read -r line
        decode "${line#* }"
        export "APPTAINER_DOCKER_USERNAME=$il_decoded" "SINGULARITY_DOCKER_USERNAME=$il_decoded"
        IFS= read -r line
        decode "${line#* }"
        export "APPTAINER_DOCKER_PASSWORD=$il_decoded" "SINGULARITY_DOCKER_PASSWORD=$il_decoded"
      } <"$payload/l$1"
    fi
    # The machine's /tmp may be small, and the home directory of the job may be none.
    [ -n "${APPTAINER_TMPDIR:-}${SINGULARITY_TMPDIR:-}" ] || export "APPTAINER_TMPDIR=$pod/images" "SINGULARITY_TMPDIR=$pod/images"
    uncached=--disable-cache
    [ -z "${APPTAINER_CACHEDIR:-}${SINGULARITY_CACHEDIR:-}" ] || [ -f "$payload/l$1" ] || uncached=
    cd "$pod/images" && exec "$tool" pull ${uncached:+"$uncached"} "$2" "$3"
  ) </dev/null >"$pod/pull.log" 2>&1 &
  begun "$!"
  pulling=$il_begun
  while is_there "$pulling" && [ -z "$ending" ]; do tick; done
  [ -z "$ending" ] || signal TERM "$pulling"
  wait "${pulling%:*}"
}

# Inside of a mesh network, the images are already there.
know_images() {
  get "$pod/tool"
  tool=$got
  i=0
  while [ "$i" -lt "$count" ]; do
    get "$pod/s/$i/image"
    eval "image_$i=\$got"
    i=$((i + 1))
  done
}
