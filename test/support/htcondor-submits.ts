import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { HTCondorClient } from '../../src/clients/htcondor/client.ts';
import { isHTCondorError } from '../../src/clients/htcondor/errors.ts';
import type { Site } from './site.ts';
import { until } from './until.ts';

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

/**
 * Stops a `condor_submit` that has called a schedd as soon as that listens to it alone. Whom it does not know yet the
 * schedd lets wait, and answers others meanwhile: then it goes on a little further.
 * @param impatient asks the same schedd, and does not wait for long
 */
export async function stopInConversation(impatient: HTCondorClient, pid: number): Promise<void> {
  const { signal } = new AbortController();
  await until('the schedd listens to it alone', async () => {
    process.kill(pid, 'SIGSTOP');
    try {
      await impatient.queue('false', ['ClusterId'], signal);
    } catch (error) {
      if (isHTCondorError(error, 'condor-timeout')) return true;
      throw error;
    }
    process.kill(pid, 'SIGCONT');
    return false;
  });
}
