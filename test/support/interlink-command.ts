/** `thresher interlink` on the real pool, started in a directory of its own, and asked by curl. */
import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { freePort } from '../env/kubernetes/ports.ts';
import { condorEnvironment } from './htcondor-site.ts';
import type { CondorSpace, Pool } from './htcondor.ts';
import { type RunningDaemon, Site, untilSaid } from './site.ts';

const run = promisify(execFile);

export class InterlinkCommand {
  readonly site = new Site({ queues: {} });
  readonly port: number;
  readonly #pool: Pool;

  /** @param config SidecarConfig.yaml */
  static async on(pool: Pool, config: Readonly<Record<string, unknown>>): Promise<InterlinkCommand> {
    return new InterlinkCommand(pool, config, await freePort());
  }

  private constructor(pool: Pool, config: Readonly<Record<string, unknown>>, port: number) {
    this.#pool = pool;
    this.port = port;
    // Daemons of the pool write the output of jobs there.
    chmodSync(this.site.directory, 0o755);
    this.configure(config);
  }

  configure(config: Readonly<Record<string, unknown>>): void {
    writeFileSync(this.site.path('SidecarConfig.yaml'), stringify(config));
  }

  /** The flags of the seed that name the pool. */
  get flags(): readonly string[] {
    const { remote, pool } = this.#pool;
    return ['--schedd-host', remote.schedd, '--collector-host', pool, '--port', String(this.port)];
  }

  start(flags: readonly string[] = this.flags): RunningDaemon {
    const { site } = this;
    return site.startWith(
      ['interlink', ...flags],
      condorEnvironment(this.#pool, site.directory),
      site.directory,
    );
  }

  async started(flags: readonly string[] = this.flags): Promise<RunningDaemon> {
    const daemon = this.start(flags);
    await untilSaid(daemon, 'interLink is answered');
    return daemon;
  }

  /** As the seed's examples ask. */
  async curl(method: string, path: string, body?: unknown) {
    const address = `http://localhost:${this.port}${path}`;
    const data =
      body === undefined ? [] : ['-H', 'Content-Type: application/json', '-d', JSON.stringify(body)];
    const args = ['-s', '--max-time', '60', '-w', '\n%{http_code}', '-X', method, address, ...data];
    const { stdout } = await run('curl', args);
    const end = stdout.lastIndexOf('\n');
    return { status: Number(stdout.slice(end + 1)), text: stdout.slice(0, end) };
  }

  /** @throws Error for anything but 200 */
  async json(method: string, path: string, body?: unknown): Promise<unknown> {
    const { status, text } = await this.curl(method, path, body);
    if (status !== 200) throw new Error(`${path} answered ${status}: ${text}`);
    return JSON.parse(text) as unknown;
  }

  /** Its jobs in the shared pool. */
  space(): CondorSpace {
    const factory = readFileSync(this.site.path('.interlink/thresher/state/factory'), 'utf8').trim();
    return { directory: this.site.directory, factory, mine: `thresherFactory =?= "${factory}"` };
  }
}
