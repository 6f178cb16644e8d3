import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Context, Worker } from '../../../src/plugins/contracts/index.ts';
import { localBackend } from '../../../src/plugins/local/index.ts';
import { LocalHost } from '../../../src/plugins/local/host.ts';
import { groupMembers } from '../../../src/plugins/local/processes.ts';
import { type BackendUnderTest, type Behaviour, describeBackendContract } from '../../contract/suite.ts';
import { type BackendParts, partOf } from '../../support/backend-parts.ts';
import { byQueue, type PayloadBackend, payloadTemplates } from '../../contract/payload-cases.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { recordingLog } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

/** The pilot does what its job type says. */
const script = 'case $1 in finishes) exit 0;; fails) exit 3;; *) exec sleep 1000;; esac';

async function makeBackend(): Promise<BackendUnderTest> {
  const directory = temporaryDirectory();
  const template = { command: '/bin/sh', args: ['-c', script, 'pilot', '${jobType}'], cpu: 0 };
  writeFileSync(join(directory, 'pilot.yaml'), stringify(template));
  const ours = () => plugins(directory, 'thresher-ours');
  // A work directory is of one factory.
  const other = plugins(directory, 'thresher-other', 'other');
  let lastId = 1000;
  const current = ours();
  return {
    ...current,
    other,
    restarted: ours,
    worker: (behaviour, factory) =>
      worker(++lastId, behaviour, factory === 'other' ? 'thresher-other' : 'thresher-ours'),
    vanish: async (gone) => {
      await endAll(directory, [gone]);
      const host = new LocalHost(join(directory, 'work'), pluginContext());
      await host.directory.remove(gone.workerId);
    },
    clean: async () => {
      const all = Array.from({ length: lastId - 1000 }, (_, at) => worker(1001 + at, 'runs', ''));
      await endAll(directory, all);
      await endAll(directory, all, 'other');
    },
  };
}

function makeForPayloads(): Promise<PayloadBackend> {
  const directory = temporaryDirectory();
  const log = recordingLog();
  for (const [queue, { script: text, args, env }] of Object.entries(payloadTemplates)) {
    const template = { command: '/bin/sh', args: ['-c', text, 'pilot', ...args], env, cpu: 0 };
    writeFileSync(join(directory, `${queue}.yaml`), stringify(template));
  }
  const make = () => {
    const context = { factoryId: 'thresher-ours', stateDir: directory, configDir: directory, log };
    return queuesOf(pluginContext({ ...context, requirements: worker(1, 'finishes', '').requirements }));
  };
  const ours = make();
  let lastId = 1000;
  return Promise.resolve({
    ...ours,
    restarted: make,
    worker: (queue) => ({ ...worker(++lastId, 'finishes', 'thresher-ours'), queue }),
    output: ({ workerId }) =>
      Promise.resolve(readFileSync(join(directory, 'work', String(workerId), 'stdout'), 'utf8')),
    traces: (workers) => {
      const files = workers.flatMap(({ workerId }) => readable(join(directory, 'work', String(workerId))));
      return Promise.resolve([...files, JSON.stringify(log.lines)].join('\n'));
    },
    clean: () =>
      endAll(
        directory,
        Array.from({ length: lastId - 1000 }, (_, at) => worker(1001 + at, 'runs', '')),
      ),
  });
}

/** The submitters of both queues as one, with what follows and ends their workers. */
function queuesOf(context: Context): Pick<PayloadBackend, 'submitter' | 'monitor' | 'sweeper'> {
  const make = <K extends keyof BackendParts>(kind: K, templateFile: string) =>
    partOf(
      localBackend.find((part) => part.kind === kind),
      kind,
      { workDir: 'work', templateFile },
      { ...context, queue: templateFile },
    );
  const submitters = { plain: make('submitter', 'plain.yaml'), values: make('submitter', 'values.yaml') };
  return {
    submitter: byQueue(submitters),
    monitor: make('monitor', 'plain.yaml'),
    sweeper: make('sweeper', 'plain.yaml'),
  };
}

/** Names and contents of all files below a directory that others than their owner may read. */
function readable(directory: string): string[] {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  return names.flatMap((name) => {
    const stats = lstatSync(join(directory, name));
    if (!stats.isFile() || (stats.mode & 0o077) === 0) return [name];
    return [name, readFileSync(join(directory, name), 'latin1')];
  });
}

describeBackendContract('local', makeBackend, makeForPayloads);

function plugins(directory: string, factoryId: string, workDir = 'work') {
  const context = pluginContext({ factoryId, stateDir: directory, configDir: directory });
  const options = { workDir, templateFile: 'pilot.yaml', pollInterval: 0.05, killGrace: 0.5 };
  const make = <K extends keyof BackendParts>(kind: K) =>
    partOf(
      localBackend.find((part) => part.kind === kind),
      kind,
      options,
      context,
    );
  return {
    submitter: make('submitter'),
    monitor: make('monitor'),
    sweeper: make('sweeper'),
  };
}

function worker(workerId: number, jobType: Behaviour, factory: string): Worker {
  return {
    workerId,
    name: `${factory}-${workerId}`,
    queue: 'Q',
    computingSite: 'SITE',
    origin: { kind: 'test', uid: 'Q', index: workerId },
    requirements: {
      nCore: 1,
      minRamCount: 0,
      maxDiskCount: 0,
      maxWalltime: 0,
      resourceType: 'SCORE',
      jobType,
      pilotType: 'PR',
      prodSourceLabel: 'managed',
    },
    placement: 'local:work',
    configId: 1,
    attempt: 1,
  };
}

/** Ends workers behind the backend's back, by KILL to their whole groups. */
async function endAll(directory: string, workers: readonly Worker[], workDir = 'work'): Promise<void> {
  const host = new LocalHost(join(directory, workDir), pluginContext());
  const claims = await Promise.all(
    workers.map(async ({ workerId }) => (await host.directory.claims(workerId, 2)).claim),
  );
  const groups = new Map(
    workers.flatMap(({ workerId }, at) => {
      const claim = claims[at];
      return claim?.by !== 'shim'
        ? []
        : [
            [
              claim.pid,
              {
                mark: `THRESHER_WORKER_DIR=${host.directory.path(workerId)}`,
                leaderStartTicks: claim.startTicks,
              },
            ] as const,
          ];
    }),
  );
  await until('all are gone', async () => {
    const members = [...(await groupMembers(groups)).values()].flat();
    for (const pid of members) process.kill(pid, 'SIGKILL');
    return members.length === 0;
  });
}
