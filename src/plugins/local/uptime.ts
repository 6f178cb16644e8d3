import { readFileSync } from 'node:fs';
import { parseStat } from './processes.ts';

/**
 * Clock ticks a second in /proc. The kernel counts there in USER_HZ, which is 100 on every machine that Node 24 runs on,
 * whatever the kernel's own HZ. Source: proc_pid_stat(5), time(7).
 */
export const ticksPerSecond = 100;

/** How long ago the machine was booted, s. Injected, so that tests can let workers age. */
export type Uptime = () => number;

/**
 * By CLOCK_BOOTTIME, as start times in /proc are: never set by an administrator or NTP, and it goes on while the machine is
 * suspended, as a worker's proxy and its job's deadline do. lxcfs shows a container's own uptime, which is shorter than
 * what start times count from: our own process tells the difference.
 */
export function systemUptime(): number {
  const [shown = ''] = readFileSync('/proc/uptime', 'utf8').split(' ');
  const { startTicks } = parseStat(readFileSync('/proc/self/stat', 'utf8'));
  return Math.max(Number(shown), startTicks / ticksPerSecond + process.uptime());
}
