/** The jobs of HTCJobs on a real pool with a real apptainer, without the operator that asks for them. */
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import type { Context, WorkerToStart } from '../../src/plugins/contracts/index.ts';
import type { HtcJobSpec } from '../../src/clients/htcjob/resource.ts';
import { isFinal } from '../../src/worker/status.ts';
import { type Apptainer, apptainer } from '../support/apptainer.ts';
import { EventServer } from '../support/event-server.ts';
import { clientOf, condorPool, type Pool, type ScheddKind } from '../support/htcondor.ts';
import { HTCondorBackend } from '../support/htcondor-backend.ts';
import { base64, htcJob, payloadOf } from '../support/htc-jobs.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';
import { type Watched, watch } from '../support/watched.ts';

const { signal } = new AbortController();

describe('jobs of HTCJobs on HTCondor', () => {
  let pool: Pool;
  let runtime: Apptainer;
  let backend: HTCondorBackend;
  let context: Context;
  let watched: Watched | undefined;

  before(async () => {
    pool = await condorPool();
    runtime = await apptainer();
  });
  after(() => {
    runtime[Symbol.dispose]();
  });
  afterEach(async () => {
    await watched?.[Symbol.asyncDispose]();
    watched = undefined;
    await backend.clean();
  });

  function begin(kind: ScheddKind): void {
    backend = new HTCondorBackend(pool, kind);
    backend.letJobsReadPayloads();
    context = backend.context();
  }

  /** Submits the jobs of one resource, and waits until they have ended. */
  async function run(
    spec: Partial<HtcJobSpec>,
    kind: ScheddKind = 'local',
    more: Parameters<typeof payloadOf>[2] = {},
  ) {
    begin(kind);
    const environment = { PATH: `${runtime.bin}:/usr/bin:/bin`, HOME: '/', HTCJOB_EVENT_PAUSE: '0' };
    backend.template('htcjob.yaml', 'exit 99', { environment, requirements: 'OpSys == "LINUX"' });
    const submitter = backend.plugin('submitter', context, {
      templateFile: 'htcjob.yaml',
      logDir: 'logs',
      submitCommands: more.submitCommands ?? [],
    });
    const script = { image: runtime.image, command: 'sh', source: '' };
    const job = htcJob({ runtime: 'apptainer', ...spec, script: { ...script, ...spec.script } });
    const workers = Array.from({ length: spec.queue ?? 1 }, (_, number): WorkerToStart => {
      const payload = payloadOf(job, number, { imagePaths: ['/no', dirname(runtime.image)], ...more });
      return { ...backend.worker({ groupId: job.metadata.uid }), payload };
    });
    const outcomes = await submitter.submit(workers, signal);
    const ids = workers.map(({ workerId }) => {
      const outcome = outcomes.get(workerId);
      if (outcome?.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(outcome)}`);
      return outcome.handle.batchID;
    });
    const seen = (watched = watch(backend.plugin('monitor', context, { pollInterval: 0.3 })));
    const lastOf = ({ workerId }: WorkerToStart) => seen.history.get(workerId)?.at(-1);
    await until('all have ended', () => workers.every((one) => isFinal(lastOf(one)?.status ?? 'idle')));
    if (kind === 'remote') await clientOf(pool, kind).transferData(backend.space.mine, signal);
    const outputs = join(backend.directory, 'state/htcondor/outputs');
    const text = (name: string, { workerId }: WorkerToStart) => {
      const paths = readdirSync(outputs).map((schedd) => join(outputs, schedd, `${workerId}.${name}`));
      const path = paths.find((one) => existsSync(one));
      return path === undefined ? undefined : readFileSync(path, 'utf8');
    };
    return {
      ids,
      ended: workers.map((one) => ({ status: lastOf(one)?.status, exitCode: lastOf(one)?.exitCode })),
      output: workers.map((one) => text('out', one)),
      errors: workers.map((one) => text('err', one)),
    };
  }
  const finished = { status: 'finished', exitCode: 0 };

  for (const kind of ['local', 'remote'] as const) {
    it(`run zero.yaml and notzero.yaml in their image, on a ${kind} schedd`, async () => {
      const source = 'echo "A"; [ -x /bin/busybox ] && [ ! -e /usr ] && echo "in the image"; exit $1';
      const { ended, output, errors, ids } = await run(
        { script: { image: runtime.image, command: 'sh', source }, queue: 2 },
        kind,
      );
      expect(ended, String(errors[0])).to.deep.equal([finished, { status: 'failed', exitCode: 1 }]);
      expect(output).to.deep.equal(['A\nin the image\n', 'A\nin the image\n']);
      const clusters = new Set(ids.map((id) => id.split('.')[0]));
      expect(clusters.size).to.equal(1);
      expect(ids.map((id) => id.split('.')[1])).to.deep.equal(['0', '1']);
    });
  }

  it('have the lines of htcopts in their ads, and the requirements of the template beside their own', async () => {
    const htcopts =
      '+MaxRuntime=10\n+Note = "a; b, $(ClusterId).$(ProcId) $x"\nrequirements = Memory > 1\npriority = 7';
    const allowed = { submitCommands: ['+Note'] };
    const { ids } = await run({ htcopts, requests: { cpus: 1, gpus: 0 } }, 'local', allowed);
    const [ad] = await clientOf(pool, 'local').history(
      backend.space.mine,
      ['MaxRuntime', 'Note', 'Requirements', 'JobPrio'],
      1,
      signal,
    );
    expect(ad).to.include({ MaxRuntime: 10, Note: `a; b, ${String(ids[0])} $x`, JobPrio: 7 });
    expect(JSON.stringify(ad)).to.match(/OpSys == .*LINUX.*\) && \(Memory > 1/);
  });

  it('keep words, variables and secrets as they are on the way into the image', async () => {
    const hostile = [
      'two  words',
      '',
      '$HOME `id` $(id) ${x}',
      `' " \\`,
      '; exit 9',
      '*',
      'a=b\nc',
      '\r\na\r\n\r\r\nb\r',
      'ü\u{1F41F}',
    ];
    const source = [
      `for one in "$@"; do printf '[%s]' "$one"; done`,
      `printf '<%s>' ${hostile.map((_, index) => `"$V${index}"`).join(' ')}`,
      'cat "$HTCJOB_SECRETS/login/password"',
      'stat -c %a "$HTCJOB_SECRETS/login/password"',
      'printf %s "$PATH"',
    ].join('\n');
    const { output, errors } = await run(
      {
        script: { image: runtime.image, command: ['sh', '-c', `sh "$@"`, 'sh'], source },
        env: [
          ...hostile.map((value, index) => ({ name: `V${index}`, value })),
          { name: 'PATH', value: '/bin' },
        ],
        secrets: [{ name: 'login' }],
      },
      'local',
      { secrets: new Map([['login', { password: base64('p$(id)\n') }]]) },
    );
    const shown = `[0]${hostile.map((one) => `<${one}>`).join('')}p$(id)\n600\n/bin`;
    expect(output[0], errors[0]).to.equal(shown);
  });

  it('see the directories of the machine that the options name, and no others', async () => {
    const source = `ls ${runtime.bin}/apptainer; ls -d /cvmfs-not-there /usr; true`;
    const { output } = await run({ script: { image: runtime.image, command: 'sh', source } }, 'local', {
      binds: ['/cvmfs-not-there', runtime.bin],
    });
    expect(output[0]).to.equal(`${runtime.bin}/apptainer\n`);
  });

  it('hole 2: change nothing from inside of their image that runs outside of it, and reach no other job', async () => {
    const secret = join(temporaryDirectory(), 'of-another');
    const source = `
      for file in run.sh script.sh send-event.sh; do echo 'echo outside' >>thresher-payload/$file || echo "kept $file"; done
      mv thresher-payload elsewhere || echo "kept all"
      ls ${secret} || echo "not seen"
      rm -f left; ln -s ${secret} left; exit 0`;
    writeFileSync(secret, 'a secret of another job\n');
    chmodSync(secret, 0o644);
    const { output, errors, ended } = await run({ script: { image: runtime.image, command: 'sh', source } });
    expect(ended, String(errors[0])).to.deep.equal([finished]);
    expect(output[0]?.split('\n')).to.deep.equal([
      ...['kept run.sh', 'kept script.sh', 'kept send-event.sh', 'kept all', 'not seen', ''],
    ]);
  });

  it('say why an image cannot be run', async () => {
    const { ended, errors } = await run({ script: { image: '/no/such/image', command: 'sh', source: '' } });
    expect(ended[0]).to.deep.equal({ status: 'failed', exitCode: 255 });
    expect(errors[0]).to.contain('/no/such/image');
  });

  describe('with events', () => {
    let server: EventServer;
    beforeEach(async () => {
      server = await EventServer.start();
    });
    afterEach(async () => {
      await server[Symbol.asyncDispose]();
    });

    it('tell of their end, with the exit status of the script', async () => {
      const script = { image: runtime.image, command: 'sh', source: 'exit $((3 + $1))' };
      const { ended } = await run({ script, queue: 2 }, 'local', { events: server });
      expect(ended.map(({ exitCode }) => exitCode)).to.deep.equal([3, 4]);
      expect(server.taken).to.have.deep.members([
        { uid: 'uid-of-zero', index: 0, returnCode: 3 },
        { uid: 'uid-of-zero', index: 1, returnCode: 4 },
      ]);
    });

    it('end as they would where no event arrives', async () => {
      const { ended, errors } = await run({}, 'local', {
        events: { url: 'http://127.0.0.1:9/nothing/listens', key: server.key },
      });
      expect(ended).to.deep.equal([finished]);
      expect(errors[0]).to.contain('not told to the daemon');
    });
  });
});
