/**
 * The shim stands between the daemon and a worker's command: a POSIX shell script, since it must be cheap (1 MB each),
 * be on every machine, and go on when the daemon dies.
 *
 * - The claim is a hard link: atomic, and complete with its content at the moment it appears. A shim that finds it
 *   taken does not start the command. So a recovering daemon fences an attempt that may still come.
 * - The command runs in the foreground: the shell then keeps a TERM until the command has ended, and so lives to write
 *   the exit status. A trap with an action (not an ignored signal) is not inherited by the command.
 * - `exit` is renamed into place: it is there as a whole or not at all. Start and end are the mtimes of `claim.N` and `exit`.
 */
export const shimScript = `#!/bin/sh
# thresher's local workers. usage: shim WORKER-DIRECTORY ATTEMPT WORKING-DIRECTORY COMMAND [ARGUMENT...]
dir=$1 attempt=$2 cwd=$3
shift 3
cd "$dir" || exit 125

# Field 22 of /proc/PID/stat is the start time: with the boot id it tells this process from a later one with its pid.
started() { shift 19; start=$1; }
IFS= read -r stat <"/proc/$$/stat" || exit 125
started \${stat##*) }
IFS= read -r boot </proc/sys/kernel/random/boot_id || exit 125

printf '{"by":"shim","pid":%s,"startTicks":%s,"bootId":"%s"}\\n' "$$" "$start" "$boot" >"claim.by-$$" || exit 125
ln "claim.by-$$" "claim.$attempt" 2>/dev/null
claimed=$?
rm -f "claim.by-$$"
[ "$claimed" -eq 0 ] || exit 124

trap : HUP INT QUIT TERM
if cd "$cwd" 2>>"$dir/stderr"; then
  "$@" >>"$dir/stdout" 2>>"$dir/stderr" </dev/null
  status=$?
  # See namespace-script.ts: the command never began.
  [ ! -e "$dir/.alive" ] || status="$status no-namespace"
else
  status=125
fi
# On a full disk it waits for room: the exit status is all that is left of the worker.
until printf '%s\\n' "$status" >"$dir/exit.tmp" && mv -f "$dir/exit.tmp" "$dir/exit"; do
  [ -d "$dir" ] || exit 125
  sleep 1
done 2>/dev/null
`;
