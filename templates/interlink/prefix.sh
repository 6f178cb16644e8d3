# shellcheck shell=sh
# Runs the operator's commands, as a shell without the strictness of the runner (run.sh), and becomes the runner with the environment that
# they leave. Only their own `exit` is a failure: many a profile ends with a test that fails.
#
#   prefix.sh PAYLOAD
thresher_payload=$1
thresher_ended=
set --
trap 'thresher_code=$?
trap - EXIT
[ -z "$thresher_ended" ] || thresher_code=0
THRESHER_POD_PREFIX=$thresher_code exec sh "$thresher_payload/run.sh"' EXIT
. "$thresher_payload/prefix"
thresher_ended=yes
exit
