import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { explainQueue } from '../../../src/config/queues/explain.ts';
import { loadPlugins } from '../../../src/daemon/plugins.ts';
import { files } from '../../support/operator-files.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const options = { stateDir: '/state', files, defaultDemand: undefined, queueList: undefined };
const local = (name: string) => ({ name, module: 'thresher/local' });
const sections = {
  submitter: local('LocalSubmitter'),
  monitor: local('LocalMonitor'),
  sweeper: local('LocalSweeper'),
};

async function explain(queue: Record<string, unknown>) {
  const file = join(temporaryDirectory(), 'queues.json');
  // JSON.stringify would leave a prototype out.
  writeFileSync(
    file,
    `{"Q": ${JSON.stringify({ ...sections, ...queue }).replace('"PROTO"', '"__proto__"')}}`,
  );
  const explained = await explainQueue(file, await loadPlugins([], '/', files), options, 'Q');
  if (explained === undefined) throw new Error('not explained');
  const noteOf = (option: string) => explained.values.find((value) => value.option === option)?.note;
  return { explained, noteOf };
}

describe('the explanation of a queue', () => {
  it('explain names the limits that push queues do not have', async () => {
    const limits = { nQueueLimitWorkerRatio: 50, nQueueLimitWorkerMin: 1, nQueueLimitWorkerCoresRatio: 5 };
    const push = await explain({ maxWorkers: 5, ...limits });
    expect(push.noteOf('nQueueLimitWorkerRatio')).to.equal('no effect: for pull queues only (mapType NoJob)');
    expect(push.noteOf('nQueueLimitWorkerMin')).to.equal('no effect: for pull queues only (mapType NoJob)');
    expect(push.noteOf('nQueueLimitWorkerCoresRatio')).to.equal('');
    const pull = await explain({ maxWorkers: 5, ...limits, mapType: 'NoJob' });
    expect(pull.noteOf('nQueueLimitWorkerRatio')).to.equal('');
  });

  it('explain shows the effective value of every limit', async () => {
    const { noteOf } = await explain({ maxWorkers: 5, nQueueLimitWorkerMax: 900, nQueueLimitWorker: 7 });
    expect(noteOf('nQueueLimitWorkerMax')).to.equal('counts as 5');
    expect(noteOf('nQueueLimitWorker')).to.equal('counts as 5');
    expect(noteOf('maxWorkers')).to.equal('');
    expect((await explain({ maxWorkers: -5 })).noteOf('maxWorkers')).to.equal('counts as 0');
    expect((await explain({ siteFamily: null })).noteOf('siteFamily')).to.equal('counts as not written');
  });

  for (const name of ['constructor', 'toString', 'PROTO'])
    it(`takes an option called ${name} for an option`, async () => {
      const { noteOf } = await explain({ [name]: 1 });
      expect(noteOf(name === 'PROTO' ? '__proto__' : name)).to.equal(
        'neither thresher nor Harvester reads it',
      );
    });

  it('explain shows the demand of a queue even if a plugin or file is missing', async () => {
    const submitter = {
      name: 'HTCondorSubmitter',
      module: 'pandaharvester.harvestersubmitter.htcondor_submitter',
    };
    const { explained } = await explain({ submitter, demand: 'fill' });
    expect(explained.verdict.state).to.not.equal('ready');
    expect(explained.demand).to.deep.equal({ value: 'fill', why: 'the queue says so' });
  });

  it('hides what lets a request in', async () => {
    const { explained } = await explain({ submitter: { ...local('LocalSubmitter'), auth: 'Bearer zzz' } });
    expect(JSON.stringify(explained)).to.not.contain('zzz');
  });
});
