# shellcheck shell=sh
# Part of the runner of a Pod (run.sh): the data of the Pod, the state of its containers, and the report.

# Gives il_decoded the text of one value.
decode() {
  case $1 in
    *\\*)
      il_decoded=$(printf '%b.' "$1")
      il_decoded=${il_decoded%.}
      ;;
    *) il_decoded=$1 ;;
  esac
}

# Gives il_1 to il_4 the fields of a line.
fields() {
  set -f
  set -- $1
  set +f
  decode "${1:-}"
  il_1=$il_decoded
  decode "${2:-}"
  il_2=$il_decoded
  decode "${3:-}"
  il_3=$il_decoded
  decode "${4:-}"
  il_4=$il_decoded
}

# A reader of a file of state sees the old text or the new one. On a full disk the reserve gives way.
put() {
  printf '%s\n' "$2" 2>/dev/null >"$1.new" && mv "$1.new" "$1" && return 0
  tries=0
  while [ "$tries" -lt 5 ]; do
    rm -f "$pod/reserve"
    printf '%s\n' "$2" 2>/dev/null >"$1.new" && mv "$1.new" "$1" && return 0
    tries=$((tries + 1))
    sleep 1
  done
  return 1
}

get() {
  got=
  [ ! -f "$1" ] || IFS= read -r got <"$1" || :
}

# stat_of DIRECTORY: gives il_stat_pid, state, parent, session and started (the time of its start, in ticks of the kernel) of the process
# whose directory in /proc that is. Its line is numbers behind the name of the program.
stat_of() {
  il_stat=
  # A name may have ends of lines.
  { while IFS= read -r il_line; do il_stat="$il_stat$il_line "; done <"$1/stat"; } 2>/dev/null
  [ -n "$il_stat" ] || return 1
  il_stat_pid=${il_stat%% *}
  set -f
  # shellcheck disable=SC2086
  read_stat ${il_stat##*) }
}

read_stat() {
  set +f
  [ $# -ge 20 ] || return 1
  state=$1 parent=$2 session=$4 started=${20}
}

# A pid is given again, to any process of the machine. So a process is known by PID:STARTTIME: `begun PID` gives it as il_begun, and so does
# `begun self` for the shell that calls it. A child that ended before this look is PID:gone: no process has that time.
begun() {
  il_begun=$1:gone
  ! stat_of "/proc/$1" || il_begun=$il_stat_pid:$started
}

# Does process PID:STARTTIME run?
is_there() {
  stat_of "/proc/${1%:*}" && [ "$started" = "${1#*:}" ] && [ "$state" != Z ]
}

# signal NAME PID:STARTTIME. All signals to a process go this way, but those of end_left. 1: it is not there.
signal() {
  is_there "$2" && kill "-$1" "${2%:*}" 2>/dev/null
}

# Has the runner look at what is new.
wake() {
  ! is_there "$runner" || kill -USR1 $$ 2>/dev/null
}

stamp() {
  date -u +%Y-%m-%dT%H:%M:%SZ
}

# Gives il_escaped text $1 as JSON has it between quotes. Only lines and tabs may be in it beside letters.
escape() {
  il_escaped=
  il_rest=$1
  while :; do
    case $il_rest in
      *[\"\\]*)
        il_plain=${il_rest%%[\"\\]*}
        il_rest=${il_rest#"$il_plain"}
        il_escaped=$il_escaped$il_plain\\${il_rest%"${il_rest#?}"}
        il_rest=${il_rest#?}
        ;;
      *) break ;;
    esac
  done
  il_escaped=$il_escaped$il_rest
}

# Prints the text of its input as JSON has it between quotes: at most $1 bytes, on one line.
escaped_text() {
  head -c "$1" | tr -d '\000-\010\013-\037\177' | tr '\011' ' ' | {
    joined=
    while IFS= read -r line || [ -n "$line" ]; do
      escape "$line"
      joined=$joined${joined:+\\n}$il_escaped
    done
    printf '%s' "$joined"
  }
}

# Reads the file "pod". It gives runtime, grace, deadline, count, and of each container its name, kind, image and the way to it.
read_pod() {
  while IFS= read -r line; do
    value=${line#* }
    case ${line%% *} in
      runtime)
        decode "$value"
        runtime=$il_decoded
        ;;
      grace) grace=$value ;;
      deadline) deadline=$value ;;
      log-bytes) log_bytes=$value ;;
      container)
        fields "$value"
        eval "name_$count=\$il_1 kind_$count=\$il_2 size_$count=0 keeper_$count="
        count=$((count + 1))
        ;;
      image)
        fields "$value"
        eval "image_$il_1=\$il_3 from_$il_1=\$il_2 cache_$il_1=\$il_4"
        ;;
    esac
  done <"$payload/pod"
}

# Gives il_real where PATH of the machine leads: leads host-path|image-path PATH. 1: it is not there, or a link of it leads out of the
# directories that the operator allows.
leads() {
  il_real=$(readlink -f -- "$2" 2>/dev/null) && [ -e "$il_real" ] || return 1
  # apptainer would bind another path.
  case $1:$il_real in host-path:*[,:\\]*) return 1 ;; esac
  while IFS= read -r il_top; do
    case $il_top in "$1 "*) ;; *) continue ;; esac
    decode "${il_top#* }"
    il_top=$(readlink -f -- "$il_decoded" 2>/dev/null) || continue
    case $il_real/ in "${il_top%/}"/*) return 0 ;; esac
  done <"$payload/pod"
  return 1
}

# Makes the files that the job brings back, all empty: HTCondor holds a job that ends without one of them. An empty report tells nothing.
leave_files() {
  i=0
  while [ "$i" -lt "$count" ]; do
    eval "name=\$name_$i"
    : >"$work/$name.log"
    : >"$work/$name.log.times"
    i=$((i + 1))
  done
  : >"$work/pod-status.json"
  chmod 644 "$work/pod-status.json"
}

# All containers wait.
begin_states() {
  i=0
  while [ "$i" -lt "$count" ]; do
    mkdir "$pod/s/$i"
    put "$pod/s/$i/reason" ContainerCreating
    i=$((i + 1))
  done
}

# Writes the files of volumes: each is some bytes of "volumes". The directory around them keeps others out.
unpack_volumes() {
  while IFS= read -r line; do
    value=${line#* }
    case ${line%% *} in
      volume) mkdir "$pod/volumes/$value" && chmod 777 "$pod/volumes/$value" || return 1 ;;
      file)
        fields "$value"
        file=$pod/volumes/$il_4
        mkdir -p "${file%/*}" || return 1
        tail -c "+$((il_1 + 1))" "$payload/volumes" | head -c "$il_2" >"$file" && chmod "$il_3" "$file" || return 1
        [ "$(wc -c <"$file")" -eq "$il_2" ] || return 1
        ;;
    esac
  done <"$payload/pod"
}

reported=
unsent=
sender=

# Messages are escaped where they are made. All other texts in the report need no escape in JSON.
report() {
  text='{"version":1,"containers":{'
  r=0
  while [ "$r" -lt "$count" ]; do
    eval "r_name=\$name_$r r_kind=\$kind_$r"
    r_dir=$pod/s/$r
    init=false
    [ "$r_kind" = main ] || init=true
    one="\"init\":$init"
    ready=false
    if [ -f "$r_dir/code" ]; then
      get "$r_dir/code"
      one="$one,\"state\":\"terminated\",\"exitCode\":$got"
      [ "$got" -le 128 ] || [ "$got" -gt 192 ] || one="$one,\"signal\":$((got - 128))"
      [ "$got" != 0 ] || [ "$r_kind" = main ] || ready=true
      get "$r_dir/finishedAt"
      one="$one,\"finishedAt\":\"$got\""
    elif [ -f "$r_dir/startedAt" ]; then
      one="$one,\"state\":\"running\""
      [ ! -f "$r_dir/ready" ] || ready=true
    else
      one="$one,\"state\":\"waiting\""
    fi
    for key in startedAt reason message; do
      get "$r_dir/$key"
      [ -z "$got" ] || one="$one,\"$key\":\"$got\""
    done
    [ "$r" -eq 0 ] || text="$text,"
    text="$text\"$r_name\":{$one,\"ready\":$ready,\"restarts\":0}"
    r=$((r + 1))
  done
  text="$text}}"
  [ "$text" != "$reported" ] || return 0
  put "$pod/report" "$text" && chmod 644 "$pod/report" && mv "$pod/report" "$work/pod-status.json" || return 0
  reported=$text
  unsent=yes
}

# One sender at a time: the next one sends what is true by then.
send() {
  [ -n "$unsent" ] && [ -f "$payload/send-report.sh" ] || return 0
  [ -z "$sender" ] || ! is_there "$sender" || return 0
  unsent=
  sh "$payload/send-report.sh" "$work/pod-status.json" </dev/null >/dev/null 2>&1 &
  begun "$!"
  sender=$il_begun
}

# How long each log is by now. One that is too long keeps its end: half of what is allowed.
log_times() {
  now=$(date +%s)
  t=0
  while [ "$t" -lt "$count" ]; do
    eval "t_name=\$name_$t size=\$size_$t"
    if [ -s "$work/$t_name.log" ]; then
      new=$(wc -c <"$work/$t_name.log")
      new=$((new))
      if [ "$log_bytes" -gt 0 ] && [ "$new" -gt "$log_bytes" ]; then
        cut_log "$work/$t_name.log"
        new=$(wc -c <"$work/$t_name.log")
        new=$((new))
      fi
      [ "$new" = "$size" ] || {
        echo "$new $now" >>"$work/$t_name.log.times"
        eval "size_$t=\$new"
      }
    fi
    t=$((t + 1))
  done
}

# The container goes on to write into the same file.
cut_log() {
  tail -c "$((log_bytes / 2))" "$1" >"$pod/log-end"
  : >"$1"
  : >"$1.times"
  {
    echo "thresher: the log had more than $log_bytes bytes: its beginning was cut off here"
    cat "$pod/log-end"
  } >>"$1"
  rm -f "$pod/log-end"
}
