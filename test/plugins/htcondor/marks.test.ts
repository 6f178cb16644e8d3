import { expect } from 'chai';
import fc from 'fast-check';
import { identityText, jobOf } from '../../../src/plugins/htcondor/marks.ts';
import type { Worker } from '../../../src/worker/worker.ts';
import { textsOfRows, workerOf } from '../../support/samples.ts';

describe('the marks of a job', () => {
  const ad = { ClusterId: 12, ProcId: 3, harvesterWorkerID: '7', JobStatus: 2 };

  it('hole 8: leave out numbers and times that there are not: one of them would keep all other jobs from being seen', () => {
    const odd = { ...ad, ExitCode: 1.5, EnteredCurrentStatus: 1e15, JobStartDate: -1e300, NumJobStarts: 2 };
    expect(jobOf(odd, true)?.ad).to.deep.equal({ ClusterId: 12, ProcId: 3, JobStatus: 2, NumJobStarts: 2 });
    for (const one of [{ ClusterId: 1.5 }, { ProcId: 1e300 }])
      expect(jobOf({ ...ad, ...one }, true)).to.equal(undefined);
  });

  it('hole 8: keep of a reason the beginning that tells what is shown, and are none where they are longer than any name', () => {
    const long = 'x'.repeat(120_000);
    const texts = { HoldReason: long, LastHoldReason: long, RemoveReason: long, RemoteHost: long };
    const marks = { thresherQueue: long, Owner: long, thresherCe: long, GridResource: `arc ${long}` };
    const job = jobOf({ ...ad, ...texts, ...marks, LastRemoteHost: 'slot1@node', ExitCode: long }, true);
    const { ClusterId, ProcId, JobStatus, LastRemoteHost, ...cut } = job?.ad ?? {};
    expect([ClusterId, ProcId, JobStatus, LastRemoteHost]).to.deep.equal([12, 3, 2, 'slot1@node']);
    // Of these 1000 are shown.
    const beginning = long.slice(0, 1501);
    expect(cut).to.deep.equal(Object.fromEntries(Object.keys(texts).map((name) => [name, beginning])));
    expect([job?.queue, job?.owner, job?.ce]).to.deep.equal([undefined, undefined, undefined]);
  });

  it('give back who the worker is, whatever it is called', () => {
    fc.assert(
      fc.property(textsOfRows, textsOfRows, (name, queue) => {
        // The uid of a counted worker's origin is its queue, and no origin has an empty one.
        const worker = workerOf(7, { name, queue: `Q${queue}`, accessPoint: `/work/${queue}` });
        const { identity } = jobOf({ ...ad, thresherIdentity: identityText(worker) }, true) ?? {};
        const { placement, configId, ...who } = worker;
        expect([placement, configId]).to.deep.equal(['local:/work', 1]);
        expect(identity).to.deep.equal(who);
      }),
    );
  });

  it('name group and payload, and have nothing of the payload itself', () => {
    const grouped = workerOf(7, { groupId: 'g 1', payloadId: '7' });
    const payload = { env: { KEY: 'of the payload' } };
    const text = identityText({ ...grouped, payload } as Worker);
    const { placement, configId, ...who } = grouped;
    expect([placement, configId]).to.deep.equal(['local:/work', 1]);
    expect(jobOf({ ...ad, thresherIdentity: text }, true)?.identity).to.deep.equal(who);
  });

  it('are one line in which HTCondor replaces nothing', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (queue) => {
        expect(identityText(workerOf(7, { queue }))).to.match(/^[\x20-\x23\x25-\x7e]+$/);
      }),
    );
  });

  it('name the CE of the job, or else its grid_resource does', () => {
    const GridResource = 'condor schedd.site.test ce.site.test:9619';
    expect(jobOf({ ...ad, thresherCe: 'chosen:1', GridResource }, true)?.ce).to.equal('chosen:1');
    expect(jobOf({ ...ad, GridResource }, true)?.ce).to.equal('ce.site.test:9619');
    expect(jobOf({ ...ad, thresherCe: '', GridResource }, true)?.ce).to.equal('ce.site.test:9619');
    expect(jobOf(ad, true)?.ce).to.equal(undefined);
  });

  it('are not believed where they contradict each other, are cut off, or are of another type', () => {
    const text = identityText(workerOf(8));
    for (const thresherIdentity of [text, text.slice(0, -1), 5, '[]', '{"workerId":7}', undefined])
      expect(jobOf({ ...ad, thresherIdentity }, true)?.identity).to.equal(undefined);
    for (const harvesterWorkerID of [7, '', '-1', '0', '7a', '1'.repeat(30), undefined])
      expect(jobOf({ ...ad, harvesterWorkerID }, true)?.workerId).to.equal(undefined);
  });

  it('keep of an ad what has the right type: an expression is no number', () => {
    const job = jobOf({ ...ad, ExitCode: '/Expr(1)/', ExitBySignal: 'x', HoldReason: 'why', Other: 1 }, true);
    expect(job?.ad).to.deep.equal({ ClusterId: 12, ProcId: 3, JobStatus: 2, HoldReason: 'why' });
    expect(jobOf({ ClusterId: 1 }, true)).to.equal(undefined);
  });
});
