/**
 * The shim stands between the daemon and a worker's command: a POSIX shell script, since it must be cheap (1 MB each),
 * be on every machine, and go on when the daemon dies.
 *
 * - The claim is a hard link: atomic, and complete with its content at the moment it appears. A shim that finds it
 *   taken does not start the command. So a recovering daemon fences an attempt that may still come.
 * - The command runs in the foreground: the shell then keeps a TERM until the command has ended, and so lives to write
 *   the exit status. A trap with an action (not an ignored signal) is not inherited by the command.
 * - No variable of the script has a name that a worker's environment may have: a shell that sets an inherited variable
 *   hands its own value on.
 * - `exit` is renamed into place: it is there as a whole or not at all. Start and end are the mtimes of `claim.N` and `exit`.
 */
export const shimScript = `#!/bin/sh
# thresher's local workers. usage: shim WORKER-DIRECTORY ATTEMPT WORKING-DIRECTORY COMMAND [ARGUMENT...]
thresher_dir=$1 thresher_attempt=$2 thresher_cwd=$3
shift 3
cd "$thresher_dir" || exit 125

# Field 22 of /proc/PID/stat is the start time: with the boot id it tells this process from a later one with its pid.
thresher_started() { shift 19; thresher_start=$1; }
IFS= read -r thresher_stat <"/proc/$$/stat" || exit 125
thresher_started \${thresher_stat##*) }
IFS= read -r thresher_boot </proc/sys/kernel/random/boot_id || exit 125

printf '{"by":"shim","pid":%s,"startTicks":%s,"bootId":"%s"}\\n' "$$" "$thresher_start" "$thresher_boot" >"claim.by-$$" || exit 125
ln "claim.by-$$" "claim.$thresher_attempt" 2>/dev/null
thresher_claimed=$?
rm -f "claim.by-$$"
[ "$thresher_claimed" -eq 0 ] || exit 124

trap : HUP INT QUIT TERM
if cd "$thresher_cwd" 2>>"$thresher_dir/stderr"; then
  # exec in a subshell: "echo" is the program of this name, and not the shell's own.
  (exec "$@") >>"$thresher_dir/stdout" 2>>"$thresher_dir/stderr" </dev/null
  thresher_status=$?
  # See namespace-script.ts: the command never began.
  [ ! -e "$thresher_dir/.alive" ] || thresher_status="$thresher_status no-namespace"
else
  thresher_status=125
fi
# On a full disk it waits for room: the exit status is all that is left of the worker.
until printf '%s\\n' "$thresher_status" >"$thresher_dir/exit.tmp" && mv -f "$thresher_dir/exit.tmp" "$thresher_dir/exit"; do
  [ -d "$thresher_dir" ] || exit 125
  sleep 1
done 2>/dev/null
`;
