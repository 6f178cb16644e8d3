import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Context, Submitter, Worker } from '../../src/plugins/contracts/index.ts';
import { builtInPlugins, Registry } from '../../src/plugins/registry.ts';
import { type BackendParts, partOf } from './backend-parts.ts';
import { clearSpaces, type CondorSpace, condorSpace, type Pool, type ScheddKind } from './htcondor.ts';
import { condorEnvironment, shellTemplate, whereOf } from './htcondor-site.ts';
import { pluginContext } from './plugin-context.ts';
import { workerOf } from './samples.ts';
import { temporaryDirectory } from './temporary.ts';

const names = {
  submitter: 'HTCondorSubmitter',
  monitor: 'HTCondorMonitor',
  sweeper: 'HTCondorSweeper',
} as const;

/** The HTCondor plugins in this process, on one schedd and without a daemon. */
export class HTCondorBackend {
  readonly directory = temporaryDirectory();
  readonly space: CondorSpace;
  readonly connection: string;
  readonly #pool: Pool;
  readonly #kind: ScheddKind;
  readonly #environment: ReadonlyMap<string, string | undefined>;
  #lastId = 1000;

  /** Until `clean`, this process finds the pool as a daemon would. */
  constructor(pool: Pool, kind: ScheddKind) {
    this.#pool = pool;
    this.#kind = kind;
    this.space = condorSpace(pool);
    this.connection = kind === 'local' ? 'htcondor:LOCAL' : `htcondor:${pool.remote.schedd},${pool.pool}`;
    chmodSync(this.directory, 0o755);
    const environment = Object.entries(condorEnvironment(pool, this.directory));
    this.#environment = new Map(environment.map(([name]) => [name, process.env[name]]));
    for (const [name, value] of environment) process.env[name] = value;
  }

  /** Makes the user of the pool the owner of `logs`: thresher gives payloads to the owner of `logDir`. */
  letJobsReadPayloads(): void {
    mkdirSync(join(this.directory, 'logs'));
    chownSync(join(this.directory, 'logs'), this.#pool.uid, this.#pool.gid);
  }

  /** A daemon's context; what is shared is shared by those with the same one. */
  context(changes: Partial<Context> = {}): Context {
    return pluginContext({
      factoryId: this.space.factory,
      configDir: this.directory,
      stateDir: join(this.directory, 'state'),
      ...changes,
    });
  }

  /** A plugin as a queue's section makes it. @throws if the section is not sound. */
  plugin<K extends keyof BackendParts>(
    kind: K,
    context: Context,
    section: Readonly<Record<string, unknown>> = {},
  ): BackendParts[K] {
    const definition = new Registry(builtInPlugins).find(kind, 'thresher/htcondor', names[kind]);
    const whole = { ...whereOf(this.#pool, this.#kind), ...section };
    return partOf(definition, kind, whole, context, kind === 'submitter' ? undefined : this.connection);
  }

  /** Writes a template; `script` is what its pilots do. */
  template(name: string, script: string, more: Readonly<Record<string, unknown>> = {}): void {
    writeFileSync(join(this.directory, name), stringify(shellTemplate(this.space, script, more)));
  }

  /** A submitter whose pilots do this. */
  submitter(script: string, context = this.context(), section: object = {}): Submitter {
    const templateFile = `${++this.#lastId}.yaml`;
    this.template(templateFile, script);
    return this.plugin('submitter', context, { templateFile, logDir: 'logs', ...section });
  }

  /** A worker that was never used before. */
  worker(changes: Partial<Worker> = {}): Worker {
    const id = ++this.#lastId;
    return workerOf(id, { name: `${this.space.factory}-${id}`, placement: this.connection, ...changes });
  }

  async clean(others: readonly CondorSpace[] = []): Promise<void> {
    await clearSpaces(this.#pool, [this.space, ...others]);
    for (const [name, value] of this.#environment) {
      if (value === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = value;
    }
  }
}
