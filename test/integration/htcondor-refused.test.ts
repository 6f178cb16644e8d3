import { expect } from 'chai';
import type { Context, Payload, SubmitOutcome, WorkerToStart } from '../../src/plugins/contracts/index.ts';
import { ownPool } from '../support/htcondor.ts';
import { HTCondorBackend } from '../support/htcondor-backend.ts';

const { signal } = new AbortController();

/** A rule of administrators, and what they say of it. */
const rule = [
  'SUBMIT_REQUIREMENT_NAMES = Sane',
  'SUBMIT_REQUIREMENT_Sane = RequestMemory < 100000 && TestRefused =!= true',
  'SUBMIT_REQUIREMENT_Sane_REASON = "jobs of this kind are not taken here"',
];

describe('hole 1: a rule of the administrators of a schedd', () => {
  let pool: Awaited<ReturnType<typeof ownPool>>;
  let backend: HTCondorBackend;
  let context: Context;

  before(async () => {
    pool = await ownPool(rule);
  });
  after(() => pool.stop());
  afterEach(() => backend.clean());

  const workerWith = (payload?: Payload): WorkerToStart => ({
    ...backend.worker(),
    ...(payload && { payload }),
  });
  const submitter = (more: Readonly<Record<string, unknown>> = {}) => {
    backend.template('pilot.yaml', 'exec sleep 1000', more);
    return backend.plugin('submitter', context, {
      templateFile: 'pilot.yaml',
      logDir: 'logs',
      submitCommands: ['+TestRefused'],
    });
  };
  const again = (worker: WorkerToStart): WorkerToStart => ({ ...worker, attempt: worker.attempt + 1 });
  const shown = (outcome: SubmitOutcome | undefined) =>
    outcome?.kind === 'rejected' ? { code: outcome.error.code, isForGood: outcome.permanent } : outcome?.kind;
  const [first, later] = [
    { code: 'condor-refused', isForGood: false },
    { code: 'condor-refused', isForGood: true },
  ];

  for (const kind of ['local', 'remote'] as const)
    describe(`on a ${kind} schedd`, () => {
      beforeEach(() => {
        backend = new HTCondorBackend(pool, kind);
        backend.letJobsReadPayloads();
        context = backend.context();
      });

      it('refuses what one payload asks for, and nothing of others; for good once others have been taken', async () => {
        const refused = workerWith({ submit: { '+TestRefused': 'true' } });
        const all = [refused, workerWith({}), workerWith()];
        const submits = submitter();
        const outcomes = await submits.submit(all, signal);
        expect(all.map(({ workerId }) => shown(outcomes.get(workerId)))).to.deep.equal([
          first,
          'accepted',
          'accepted',
        ]);
        const outcome = outcomes.get(refused.workerId);
        expect(outcome?.kind === 'rejected' && outcome.error.message).to.contain(
          'jobs of this kind are not taken here',
        );
        const next = await submits.submit([again(refused)], signal);
        expect(shown(next.get(refused.workerId))).to.deep.equal(later);
      });

      it('refuses a number of one worker, and none of those that share its condor_submit', async () => {
        const all = ['64', '1000000', '128'].map((memory) =>
          workerWith({ submit: { request_memory: memory } }),
        );
        const submits = submitter();
        const outcomes = await submits.submit(all, signal);
        expect(all.map(({ workerId }) => shown(outcomes.get(workerId)))).to.deep.equal([
          'accepted',
          first,
          'accepted',
        ]);
      });

      it('finds the one among many that differ, and fails none of the others', async () => {
        const memories = Array.from({ length: 60 }, (_, at) => (at === 47 ? '1000000' : String(64 + at)));
        let left = memories.map((memory) => workerWith({ submit: { request_memory: memory } }));
        const refused = left[47];
        const submits = submitter();
        for (let attempt = 0; attempt < 3; attempt++) {
          const outcomes = await submits.submit(left, signal);
          const rejected = left.filter(({ workerId }) => outcomes.get(workerId)?.kind === 'rejected');
          expect(rejected.map(({ workerId }) => workerId)).to.deep.equal([refused?.workerId]);
          left = rejected.map(again);
        }
      });

      it('keeps those that its tries do not reach for the next call', async () => {
        const payloads = Array.from({ length: 48 }, (_, at) => (at % 3 === 0 ? '1000000' : '64'));
        const all = payloads.map((memory) => workerWith({ submit: { request_memory: memory } }));
        const good = all.filter((_, at) => at % 3 !== 0).map(({ workerId }) => workerId);
        const submits = submitter();
        const accepted: number[] = [];
        let left = all;
        for (let attempt = 0; attempt < 20 && accepted.length < good.length; attempt++) {
          const outcomes = await submits.submit(left, signal);
          const kindOf = ({ workerId }: WorkerToStart) => outcomes.get(workerId)?.kind;
          accepted.push(...left.filter((one) => kindOf(one) === 'accepted').map(({ workerId }) => workerId));
          const forGood = left.filter(({ workerId }) => {
            const outcome = outcomes.get(workerId);
            return outcome?.kind === 'rejected' && outcome.permanent;
          });
          for (const { workerId } of forGood) expect(good).to.not.include(workerId);
          left = left.filter((one) => kindOf(one) === 'rejected' && !forGood.includes(one)).map(again);
        }
        expect(accepted.toSorted((one, other) => one - other)).to.deep.equal(good);
      });

      it('refuses none for good where it takes no other of the queue: the template may be what it refuses', async () => {
        let all = [workerWith({ submit: { request_memory: '64' } }), workerWith()];
        const submits = submitter({ '+TestRefused': true });
        for (let attempt = 0; attempt < 3; attempt++) {
          const outcomes = await submits.submit(all, signal);
          expect(all.map(({ workerId }) => shown(outcomes.get(workerId)))).to.deep.equal([first, first]);
          all = all.map(again);
        }
      });
    });
});
