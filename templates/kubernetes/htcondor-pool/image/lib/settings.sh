# shellcheck shell=sh
# Part of the entrypoint: the environment becomes the file of settings that 90-thresher-role.conf includes.

# number NAME DEFAULT: gives `value` the number in a variable of the environment, or the default.
number() {
  eval "value=\${$1:-\$2}"
  case $value in
    '' | *[!0-9]* | ??????????*) refuse "$1 is \"$value\": write a whole number" ;;
  esac
}

# word NAME DEFAULT: gives `value` a name.
word() {
  eval "value=\${$1:-\$2}"
  case $value in
    *[!A-Za-z0-9._@-]*) refuse "$1 is \"$value\": write letters, digits and any of . _ @ -" ;;
  esac
}

setting() { printf '%s = %s\n' "$1" "$2" >>"$run/role.conf.new"; }

# text NAME VALUE: a string of ClassAds. HTCondor would take $( for a macro.
text() {
  case $2 in *'
'*) refuse "$1 has more than one line" ;; esac
  setting "$1" "\"$(printf '%s' "$2" | sed -e 's/[\\"]/\\&/g' -e 's/\$/$(DOLLAR)/g')\""
}

# mark NAME VALUE: a text, unless it is empty. A fixed worker is of no factory: an empty ThresherFactory would compare equal to that
# of a command that has none.
mark() { [ -z "$2" ] || text "$1" "$2"; }

cannot_write() { refuse "$1 cannot be written by the user $(id -u): mount an emptyDir there, and set fsGroup of the Pod to $(id -g)"; }

# Gives `central_manager` and `port` what CONDOR_HOST says.
find_central_manager() {
  given=${CONDOR_HOST:-${CONDOR_SERVICE_HOST:-${HTCONDOR_CENTRAL_MANAGER_SERVICE_HOST:-}}}
  central_manager=$given port=9618
  case $given in
    '') refuse 'CONDOR_HOST is missing: write the name or the address of the central manager, as htcondor-central-manager' ;;
    \[*]:*) central_manager=${given%:*} port=${given##*:} ;;
    \[*]) ;;
    *:*:*) central_manager=[$given] ;;
    *:*) central_manager=${given%:*} port=${given#*:} ;;
  esac
  case $central_manager in '' | *[!A-Za-z0-9._:[\]-]*) refuse "CONDOR_HOST is \"$given\": write HOST or HOST:PORT" ;; esac
  case $port in '' | *[!0-9]*) refuse "CONDOR_HOST is \"$given\": write HOST or HOST:PORT" ;; esac
  # Where the cluster has no DNS: Kubernetes tells a Pod the addresses of the Services that were there before it.
  case $central_manager in *[!A-Za-z0-9-]*) return ;; esac
  getent hosts "$central_manager" >/dev/null 2>&1 && return
  address=$(printenv "$(printf '%s' "$central_manager" | tr 'a-z-' 'A-Z_')_SERVICE_HOST") && central_manager=$address
}

# A startd offers all of the node's disk, and Kubernetes ends a Pod that uses more than its limit: DISK (MiB) is what jobs may have.
reserve_disk() {
  number RESERVED_DISK 0
  reserved=$value
  number DISK 0
  if [ "$value" -gt 0 ]; then
    free=$(df -Pk "$execute" | awk 'NR == 2 { print int($4 / 1024) }')
    rest=$((${free:-0} - value))
    [ "$rest" -le "$reserved" ] || reserved=$rest
  fi
  setting RESERVED_DISK "$reserved"
}

worker_settings() {
  # The root of a volume is root's, and the startd wants a directory of its own user.
  mkdir -p "$execute/jobs" && chmod 755 "$execute/jobs" || cannot_write "$execute"
  setting EXECUTE "$execute/jobs"
  [ -z "${NUM_CPUS:-}" ] || { number NUM_CPUS 1 && setting NUM_CPUS "$value"; }
  [ -z "${MEMORY:-}" ] || { number MEMORY 1 && setting MEMORY "$value"; }
  reserve_disk
  number STARTD_NOCLAIM_SHUTDOWN 600
  setting STARTD_NOCLAIM_SHUTDOWN "$value"
  number UPDATE_INTERVAL 120
  setting UPDATE_INTERVAL "$value"
  text HtcondorPoolInstance "$instance"
  mark ThresherFactory "${THRESHER_FACTORY:-}"
  mark ThresherWorker "${HARVESTER_WORKER_ID:-}"
  mark ThresherQueue "${THRESHER_QUEUE:-${pandaQueueName:-}}"
  mark ThresherShape "${POOL_SHAPE:-${THRESHER_SHAPE:-}}"
}

write_settings() {
  { mkdir -p "$run" && : >"$run/role.conf.new"; } 2>/dev/null || cannot_write "$run"
  printf 'include : %s\n' "$here/roles/$role.conf" >>"$run/role.conf.new"
  word TRUST_DOMAIN htcondor-pool
  setting UID_DOMAIN "$value"
  copy_secrets
  if [ "$role" != central-manager ]; then
    find_central_manager
    setting CONDOR_HOST "$central_manager"
    setting COLLECTOR_HOST "$central_manager:$port"
    # Pods that name the central manager alike reach each other without it: else a schedd would ask for workers at the address of a
    # central manager that is gone, for as long as they do not notice.
    setting PRIVATE_NETWORK_NAME "$central_manager"
  fi
  case $role in
    schedd)
      word SCHEDD_NAME "$(hostname)"
      setting SCHEDD_NAME "$value"
      case ${SCHEDULER_UNIVERSE:-no} in
        yes | true) setting RUNS_SCHEDULER_UNIVERSE True ;;
        no | false) ;;
        *) refuse "SCHEDULER_UNIVERSE is \"$SCHEDULER_UNIVERSE\": write yes or no" ;;
      esac
      ;;
    worker) worker_settings ;;
  esac
  for more in "$etc"/more.d/*.conf; do
    [ ! -f "$more" ] || printf 'include : %s\n' "$more" >>"$run/role.conf.new"
  done
  mv "$run/role.conf.new" "$run/role.conf"
}
