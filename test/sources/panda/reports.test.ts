import { expect } from 'chai';
import { workerErrors } from '../../../src/codes/workers.ts';
import { htcondorErrors } from '../../../src/clients/htcondor/codes.ts';
import { kubernetesErrors } from '../../../src/clients/kubernetes/codes.ts';
import { htcondorWorkerErrors } from '../../../src/plugins/htcondor/codes.ts';
import { kubernetesWorkerErrors } from '../../../src/plugins/kubernetes/codes.ts';
import { localWorkerErrors } from '../../../src/plugins/local/codes.ts';
import { errorNumberOf, errorNumbers, otherError } from '../../../src/sources/panda/error-numbers.ts';
import { bareReport, reportOf, submissionHostOf } from '../../../src/sources/panda/reports.ts';
import type { KnownWorker } from '../../../src/worker/news.ts';
import { workerNews } from '../../support/panda-table.ts';

const facts = { host: 'factory.example.org', queue: 'QUEUE' };
const report = (worker: Partial<KnownWorker>, more = {}) =>
  reportOf(workerNews(7, 1, worker).worker, { ...facts, ...more });

describe('a worker as the PanDA server hears of it', () => {
  it('has the fields of Harvester, and none that is not known', () => {
    expect(
      report({ status: 'running', startTime: 3, node: 'n1', computingElement: 'ce', nativeStatus: 'R' }),
    ).to.deep.equal({
      workerID: 7,
      status: 'running',
      queueName: 'QUEUE',
      computingSite: 'SITE',
      computingElement: 'ce',
      harvesterHost: 'factory.example.org',
      submissionHost: 'factory.example.org',
      syncLevel: 1,
      batchID: 'job-7',
      nodeID: 'n1',
      nCore: 1,
      minRamCount: 2000,
      jobType: 'managed',
      resourceType: 'SCORE',
      submitTime: 2,
      startTime: 3,
      nativeStatus: 'R',
    });
  });

  it('has its error as a number of Harvester beside our words once it has ended, and not before', () => {
    const error = { errorCode: 'exit-status', diagMessage: 'exit status 7', exitCode: 7 };
    expect(report({ status: 'failed', ...error })).to.deep.include({
      errorCode: 3831,
      nativeExitCode: 7,
      diagMessage: 'exit-status: exit status 7',
    });
    expect(report({ status: 'submitted', ...error })).not.to.have.property('errorCode');
  });

  it('has the schedd and its pool where HTCondor took it', () => {
    const host = 'factory.example.org';
    expect(submissionHostOf({ placement: 'htcondor:schedd1,pool1:9618' }, host)).to.equal(
      'schedd1,pool1:9618',
    );
    expect(submissionHostOf({ placement: 'htcondor:LOCAL' }, host)).to.equal('LOCAL');
    expect(submissionHostOf({ placement: 'local:/work' }, host)).to.equal(host);
    expect(submissionHostOf({ placement: null }, host)).to.equal(host);
  });

  it('has the addresses of its logs where these are served to others', () => {
    const logs = { stdOut: 'o', stdErr: 'e', batchLog: 'b', jdl: 'j' };
    expect(report({}, { logs })).to.deep.include(logs);
    expect(report({})).not.to.have.any.keys('stdOut', 'stdErr', 'batchLog', 'jdl');
  });

  it('is nothing while it is an intent', () => {
    expect(report({ status: 'pending' })).to.equal(undefined);
    expect(report({ status: 'withdrawn', workerId: null })).to.equal(undefined);
  });

  it('can be said without any text of a backend', () => {
    const whole = report({ status: 'failed', errorCode: 'killed', diagMessage: 'why', endTime: 9 });
    if (whole === undefined) throw new Error('no report');
    expect(bareReport(whole)).to.deep.equal({
      workerID: 7,
      status: 'failed',
      computingSite: 'SITE',
      submitTime: 2,
      endTime: 9,
      errorCode: 8971,
    });
  });
});

describe('numbers of errors', () => {
  const codes = Object.keys({
    ...workerErrors,
    ...localWorkerErrors,
    ...kubernetesWorkerErrors,
    ...kubernetesErrors,
    ...htcondorErrors,
    ...htcondorWorkerErrors,
  });

  it('exist for each error of a worker or of a backend that refuses it, and for no other', () => {
    expect(Object.keys(errorNumbers)).to.have.members(codes);
  });

  it('are those of Harvester, which groups them by thousands', () => {
    for (const [code, number] of Object.entries(errorNumbers))
      expect(number, code).to.satisfy(
        (one: number) => one === otherError || one === 1001 || (one >= 2001 && one <= 8991),
      );
  });

  it('fall to that of all others for codes of third parties', () => {
    expect(errorNumberOf('arc-failed')).to.equal(9000);
    expect(errorNumberOf('toString')).to.equal(9000);
  });
});
