import { homedir, hostname } from 'node:os';

/** The facts that settings may take from their machine. */
export interface Machine {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hostname: string;
  readonly home: string;
}

export function thisMachine(): Machine {
  return { env: process.env, hostname: hostname(), home: homedir() };
}

/** The name of this instance as PanDA knows it. */
export function harvesterIdOf({ harvester_id }: { readonly harvester_id?: string | undefined }): string {
  return harvester_id ?? `thresher-${hostname()}`;
}

/** A variable that settings name. HOSTNAME, in any case, is the short host name, set or not: Harvester's rule. */
export function variable(name: string, { env, hostname }: Machine): string | undefined {
  return name.toUpperCase() === 'HOSTNAME' ? hostname.split('.')[0] : env[name];
}

/** Harvester's own directory below its home; undefined without one. */
export function pandaHome({ env }: Machine): string | undefined {
  return env.PANDA_HOME === '' ? undefined : env.PANDA_HOME;
}
