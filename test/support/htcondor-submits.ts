import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Site } from './site.ts';

/** A `condor_submit` that a daemon of a site has started. */
export interface RunningSubmit {
  readonly pid: number;
  /** Connections that it has made: before the first one nobody has heard of it. */
  readonly connections: number;
}

/** Those that are written down as under way. @throws where a file is half written, or its process gone */
export function submitting(site: Site): RunningSubmit[] {
  const directory = site.path('state', 'htcondor', 'submits');
  return readdirSync(directory).map((name) => {
    const { pid } = JSON.parse(readFileSync(join(directory, name), 'utf8')) as { pid: number };
    return { pid, connections: connectionsOf(pid) };
  });
}

/** Connections that a process has made: beside its standard streams, which are sockets of whoever started it. */
export function connectionsOf(pid: number): number {
  const directory = `/proc/${pid}/fd`;
  const targets = readdirSync(directory).map((name) => {
    try {
      return readlinkSync(join(directory, name));
    } catch {
      // Closed meanwhile.
      return '';
    }
  });
  return targets.filter((target) => target.startsWith('socket:')).length - 3;
}
