/** What every backend must do, whatever it is made of. A new backend is done when it passes. */
import { expect } from 'chai';
import type { Monitor, Observation, Submitter, Sweeper, Worker } from '../../src/plugins/contracts/index.ts';
import { isFinal } from '../../src/worker/status.ts';
import { until } from '../support/until.ts';
import { describePayloadContract, type PayloadBackend } from './payload-cases.ts';

export type Behaviour = 'finishes' | 'fails' | 'runs';

/** One backend under test, with a factory of its own on it. */
export interface BackendUnderTest {
  readonly submitter: Submitter;
  readonly monitor: Monitor;
  readonly sweeper: Sweeper;
  /** The same backend as another factory sees it. */
  readonly other: { readonly submitter: Submitter; readonly monitor: Monitor; readonly sweeper: Sweeper };
  /** A worker that was never used before; `factory` for the other one's. */
  worker(behaviour: Behaviour, factory?: 'other'): Worker;
  /** Plugins made anew, as after a restart of the daemon. */
  restarted(): Pick<BackendUnderTest, 'submitter' | 'monitor' | 'sweeper'>;
  /** Removes the worker behind the backend's back. */
  vanish(worker: Worker): Promise<void>;
  clean(): Promise<void>;
}

/** `makeForPayloads`: the same backend, with the queues that `payload-cases.ts` describes. */
export function describeBackendContract(
  name: string,
  make: () => Promise<BackendUnderTest>,
  makeForPayloads?: () => Promise<PayloadBackend>,
): void {
  if (makeForPayloads !== undefined) describePayloadContract(name, makeForPayloads);
  describe(`the contract of a backend: ${name}`, () => {
    let backend: BackendUnderTest;
    const { signal } = new AbortController();

    beforeEach(async () => {
      backend = await make();
    });

    afterEach(async () => {
      await backend.clean();
    });

    async function submitted(...workers: Worker[]): Promise<Worker[]> {
      const outcomes = await backend.submitter.submit(workers, signal);
      return workers.map((worker) => {
        const outcome = outcomes.get(worker.workerId);
        if (outcome?.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(outcome)}`);
        return { ...worker, handle: outcome.handle };
      });
    }

    /** Observes until `enough`, and returns what was shown last of each worker. */
    async function observed(
      enough: (seen: ReadonlyMap<number, Observation>, complete: number) => boolean,
      monitor: Monitor = backend.monitor,
    ): Promise<Map<number, Observation>> {
      const seen = new Map<number, Observation>();
      let complete = 0;
      const stop = new AbortController();
      const work = monitor.observe(
        {
          begin: () => undefined,
          observe: (observation) => seen.set(observation.workerId, observation),
          complete: () => {
            complete++;
          },
          gone: () => undefined,
          trouble: (reason) => {
            throw new Error(reason.message);
          },
        },
        stop.signal,
      );
      try {
        await until('enough was observed', () => enough(seen, complete));
      } finally {
        stop.abort();
        await work;
      }
      return seen;
    }

    const ended =
      (...workers: Worker[]) =>
      (seen: ReadonlyMap<number, Observation>) =>
        workers.every(({ workerId }) => isFinal(seen.get(workerId)?.status ?? 'pending'));

    it('has nothing to say against a sound configuration', async () => {
      expect((await backend.submitter.preflight(signal)).problems).to.deep.equal([]);
    });

    it('gives one outcome per worker of a batch, with what the backend calls it', async () => {
      const workers = [backend.worker('runs'), backend.worker('runs'), backend.worker('runs')];
      const handles = (await submitted(...workers)).map(({ handle }) => handle?.batchID);
      expect(new Set(handles).size).to.equal(3);
      expect(handles).not.to.include('');
    });

    it('shows a success as finished and a failure as failed, with exit status, times and node', async () => {
      const [good, bad] = await submitted(backend.worker('finishes'), backend.worker('fails'));
      if (good === undefined || bad === undefined) throw new Error('two workers were submitted');
      const seen = await observed(ended(good, bad));
      expect(seen.get(good.workerId)).to.include({ status: 'finished', exitCode: 0 });
      const failed = seen.get(bad.workerId);
      expect(failed?.status).to.equal('failed');
      expect(failed?.exitCode).to.be.greaterThan(0);
      expect(failed?.error?.code).to.be.a('string').that.is.not.empty;
      expect(failed?.node).to.be.a('string').that.is.not.empty;
      expect(failed?.endTime).to.be.at.least(failed?.startTime ?? Infinity);
    });

    it('shows everything that exists before it calls a listing complete, also after a restart', async () => {
      const workers = await submitted(backend.worker('runs'), backend.worker('finishes'));
      await observed(ended(...workers.slice(1)));
      const { monitor } = backend.restarted();
      const seen = await observed((_, complete) => complete > 0, monitor);
      expect([...seen.keys()].sort()).to.deep.equal(workers.map(({ workerId }) => workerId).sort());
    });

    it('finds what was submitted, whoever submitted it', async () => {
      const [worker] = await submitted(backend.worker('runs'));
      if (worker === undefined) throw new Error('one worker was submitted');
      const { handle, ...intent } = worker;
      const found = (await backend.restarted().submitter.find([intent], signal)).get(worker.workerId);
      expect(found?.kind === 'found' && found.handle.batchID).to.equal(handle?.batchID);
    });

    it('fences what it says is absent: a late attempt does not start it, the next one does', async () => {
      const worker = backend.worker('finishes');
      expect((await backend.submitter.find([worker], signal)).get(worker.workerId)).to.deep.equal({
        kind: 'absent',
      });
      // The attempt that was given up wakes after all.
      const late = (await backend.submitter.submit([worker], signal)).get(worker.workerId);
      expect(late?.kind).to.not.equal('accepted');
      expect((await backend.monitor.check([worker], signal)).get(worker.workerId)).to.deep.equal({
        kind: 'absent',
      });
      const [again] = await submitted({ ...worker, attempt: 2 });
      if (again === undefined) throw new Error('one worker was submitted');
      expect((await observed(ended(again))).get(worker.workerId)?.status).to.equal('finished');
    });

    it('looks up by name, and says absent of what vanished', async () => {
      const [worker] = await submitted(backend.worker('runs'));
      if (worker === undefined) throw new Error('one worker was submitted');
      const present = (await backend.monitor.check([worker], signal)).get(worker.workerId);
      expect(present?.kind).to.equal('observed');
      await backend.vanish(worker);
      expect((await backend.monitor.check([worker], signal)).get(worker.workerId)).to.deep.equal({
        kind: 'absent',
      });
    });

    it('kills until it is gone; the killed worker is no success, and killing it again is fine', async () => {
      const [worker] = await submitted(backend.worker('runs'));
      if (worker === undefined) throw new Error('one worker was submitted');
      await until('it is gone', async () => {
        const outcome = (await backend.sweeper.kill([worker], signal)).get(worker.workerId);
        return outcome?.kind === 'gone';
      });
      const result = (await backend.monitor.check([worker], signal)).get(worker.workerId);
      if (result?.kind === 'observed') expect(['cancelled', 'failed']).to.include(result.observation.status);
      else expect(result).to.deep.equal({ kind: 'absent' });
      expect((await backend.sweeper.kill([worker], signal)).get(worker.workerId)).to.deep.equal({
        kind: 'gone',
      });
    });

    it('removes all traces, twice if asked twice, also of what was never there', async () => {
      const [worker] = await submitted(backend.worker('finishes'));
      if (worker === undefined) throw new Error('one worker was submitted');
      await observed(ended(worker));
      for (let time = 1; time <= 2; time++) {
        await until('it is gone', async () => {
          const outcome = (await backend.sweeper.remove([worker], signal)).get(worker.workerId);
          return outcome?.kind === 'gone';
        });
      }
      expect(await backend.sweeper.list(signal)).to.deep.equal([]);
      const never = backend.worker('runs');
      expect((await backend.sweeper.remove([never], signal)).get(never.workerId)).to.deep.equal({
        kind: 'gone',
      });
      expect((await backend.sweeper.kill([never], signal)).get(never.workerId)).to.deep.equal({
        kind: 'gone',
      });
    });

    it('lists everything with our mark and enough to make its row again', async () => {
      const workers = await submitted(backend.worker('runs'), backend.worker('runs'));
      const listed = await backend.restarted().sweeper.list(signal);
      expect(listed).to.have.length(2);
      for (const worker of workers) {
        const found = listed.find(({ identity }) => identity?.workerId === worker.workerId);
        expect(found?.identity).to.deep.include({
          queue: worker.queue,
          name: worker.name,
          computingSite: worker.computingSite,
          origin: worker.origin,
          requirements: worker.requirements,
        });
      }
    });

    it('leaves another factory alone: neither lists, shows, nor kills what is not ours', async () => {
      const theirs = backend.worker('runs', 'other');
      const outcome = (await backend.other.submitter.submit([theirs], signal)).get(theirs.workerId);
      expect(outcome?.kind).to.equal('accepted');
      expect(await backend.sweeper.list(signal)).to.deep.equal([]);
      const seen = await observed((_, complete) => complete > 0);
      expect([...seen.keys()]).to.deep.equal([]);
      expect(await backend.other.sweeper.list(signal)).to.have.length(1);
    });

    it('stops when told to, also in the middle of a call', async () => {
      const aborted = AbortSignal.abort();
      const worker = backend.worker('runs');
      const outcome = (await backend.submitter.submit([worker], aborted)).get(worker.workerId);
      expect(outcome?.kind).to.not.equal('accepted');
      await backend.monitor.observe(
        {
          begin: () => undefined,
          observe: () => undefined,
          complete: () => undefined,
          gone: () => undefined,
          trouble: () => undefined,
        },
        aborted,
      );
    });
  });
}
