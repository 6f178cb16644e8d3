/**
 * Runs a worker's command in a PID namespace of its own, where `ps` shows the worker's processes only. The shim stays
 * outside and runs this script in the command's place: the claim's pid, the process group and the exit status are the
 * host's as ever.
 *
 * - `unshare --pid` without `--fork` leaves the script itself outside. Its first child is PID 1 of the namespace, and the
 *   command comes after it: the command's parent is outside, so its PPID is 0, as in a container. A child of PID 1 would
 *   count as an orphan for the PanDA pilot, which ends orphans. And PID 1 ignores a TERM that it has no handler for.
 * - PID 1 is a shell that waits, and so takes in the orphans. It waits for `cat`, which comes to its end when this script
 *   has ended, in whatever way: then PID 1 ends, and the kernel ends all that is left in the namespace. A pilot may kill
 *   `cat`, which starts anew, but not PID 1. The session of their own keeps them out of the pilot's process group.
 * - PID 1 and `cat` carry no mark: they are no part of the worker, and go with it.
 * - The pipe's name goes at the last moment before the command begins, inside. If it is still there at the end, no
 *   namespace could be made or entered, and the shim says so in the exit file.
 * - The command's /proc is mounted anew, in a mount namespace that still sees what the host mounts later.
 */
export const insideScript = `#!/bin/sh
# thresher's local workers. usage: inside DIRECTORY OPTIONS-OF-UNSHARE ENTERING-COMMAND COMMAND [ARGUMENT...]
if [ "$1" != --unshared ]; then
  rm -f "$1/.alive"
  mkfifo "$1/.alive" || { : >"$1/.alive"; exit 125; }
  exec unshare $2 -- /bin/sh "$0" --unshared "$@"
fi
thresher_dir=$2 thresher_enter=$4
shift 4

# Opened for reading and writing a pipe waits for nothing. This script alone keeps the end for writing.
exec 9<>"$thresher_dir/.alive" 8<"$thresher_dir/.alive" || exit 125
(
  unset THRESHER_WORKER_DIR THRESHER_WORKER
  exec setsid /bin/sh -c 'while :; do cat; [ "$?" -gt 128 ] || exit; done' <&8 >/dev/null 2>&1 8<&- 9>&-
) &
thresher_init=$!
exec 8<&-

trap : HUP INT QUIT TERM
$thresher_enter /bin/sh -c 'rm -f "$0/.alive"; exec "$@"' "$thresher_dir" "$@" 9>&-
thresher_status=$?
kill -KILL "$thresher_init" 2>/dev/null
exit "$thresher_status"
`;
