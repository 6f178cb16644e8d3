# shellcheck shell=sh
# Part of the entrypoint and of the probes: places, and how the container ends.

# Tests have these directories elsewhere.
etc=${HTCONDOR_POOL_ETC:-/etc/condor}
run=${HTCONDOR_POOL_RUN:-/run/condor}
log=${HTCONDOR_POOL_LOG:-/var/log/condor}
execute=${HTCONDOR_POOL_EXECUTE:-/var/lib/condor/execute}
proc=${HTCONDOR_POOL_PROC:-/proc}
termination_log=${HTCONDOR_POOL_TERMINATION_LOG:-/dev/termination-log}

# fail CODE SENTENCE: Kubernetes shows the sentence as the container's termination message.
fail() {
  printf '%s\n' "$2" >&2
  { printf '%s\n' "$2" >"$termination_log"; } 2>/dev/null || :
  exit "$1"
}

# What an operator wrote is wrong: sysexits.h calls it EX_USAGE.
refuse() { fail 64 "htcondor-pool: $1"; }

# runs NAME: whether a process of this name lives in the container. The kernel keeps 15 bytes of a name.
runs() { [ -n "$(processes "$1")" ]; }

processes() {
  wanted=$(printf %.15s "$1")
  for one in "$proc"/[0-9]*/comm; do
    # A process may end between the two looks.
    { read -r name <"$one"; } 2>/dev/null || continue
    [ "$name" != "$wanted" ] || echo "${one%/comm}"
  done
}

# Whether a job runs. A startd that starts asks each starter what it can do (-classad): no job is behind that one.
works() {
  for one in $(processes condor_starter); do
    words=$(tr '\000' ' ' <"$one/cmdline") 2>/dev/null
    case $words in '' | *' -classad '*) ;; *) return 0 ;; esac
  done
  return 1
}
