import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const source = resolve(import.meta.dirname, '../limit');

export interface Spent {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

export interface Creation {
  readonly namespace: string;
  /** File with the Job as JSON. */
  readonly job: string;
  readonly prefix: string;
  readonly count: number;
  /** Default: client-go's. */
  readonly contentType?: string;
}

/** The client-go loop of bench/limit. */
export class Limit {
  readonly #program: string;
  readonly #kubeconfig: string;

  /** Builds it; from nothing that takes a minute, and Go fetches what it does not have. */
  static async build(directory: string, kubeconfig: string): Promise<Limit> {
    const program = join(directory, 'limit');
    const env = { ...process.env, CGO_ENABLED: '0' };
    await run('go', ['build', '-trimpath', '-o', program, '.'], { cwd: source, env });
    return new Limit(program, kubeconfig);
  }

  private constructor(program: string, kubeconfig: string) {
    this.#program = program;
    this.#kubeconfig = kubeconfig;
  }

  create({ namespace, job, prefix, count, contentType }: Creation): Promise<Spent> {
    return this.#run('create', namespace, job, prefix, String(count), ...(contentType ? [contentType] : []));
  }

  /** Its Jobs, and all Pods of the namespace. */
  delete({ namespace, prefix, count }: Omit<Creation, 'job'>): Promise<Spent> {
    return this.#run('delete', namespace, prefix, String(count));
  }

  async #run(...args: string[]): Promise<Spent> {
    const env = { ...process.env, KUBECONFIG: this.#kubeconfig };
    const { stdout } = await run(this.#program, args, { env, timeout: 600_000, killSignal: 'SIGKILL' });
    return JSON.parse(stdout) as Spent;
  }
}
