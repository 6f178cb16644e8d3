import { execFileSync } from 'node:child_process';
import { type KdcStatus, startKdc, stopKdc } from '../env/kerberos/kdc.ts';
import { temporaryDirectory } from './temporary.ts';

/** A KDC of a test's own. */
export interface Kdc extends KdcStatus {
  /** For tools: nothing of this machine's own Kerberos configuration. */
  readonly environment: Record<string, string>;
  kinit(cache: string, ...options: readonly string[]): void;
  stop(): Promise<void>;
}

export async function ownKdc(): Promise<Kdc> {
  const directory = temporaryDirectory();
  const status = await startKdc(directory);
  const environment = { PATH: process.env['PATH'] ?? '', KRB5_CONFIG: status.config };
  const kinit = (cache: string, ...options: readonly string[]) => {
    const login = ['-k', '-t', status.keytab, '-c', `FILE:${cache}`];
    execFileSync('kinit', [...login, ...options, status.principal], { env: environment, stdio: 'pipe' });
  };
  return { ...status, environment, kinit, stop: () => stopKdc(directory) };
}
