import { expect } from 'chai';
import { join } from 'node:path';
import type { Context } from '../../../src/plugins/contracts/index.ts';
import { HTCondorConnection } from '../../../src/plugins/htcondor/connection.ts';
import type { HTCondorSchedd } from '../../../src/plugins/htcondor/schedd.ts';
import { htcondorBackend } from '../../../src/plugins/htcondor/index.ts';
import { connectionAt, leaveQueue, partOf } from '../../support/backend-parts.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('the log of job events of a schedd', () => {
  let context: Context;
  const base = { templateFile: 'pilot.yaml', logDir: 'logs' };
  const submitter = htcondorBackend.find(({ kind }) => kind === 'submitter');
  const plain = { spooled: false, poolLog: undefined };

  beforeEach(() => {
    const directory = temporaryDirectory();
    context = pluginContext({ stateDir: join(directory, 'state'), configDir: directory });
  });

  const lead = (queue: string, section: object, configId = 1) =>
    partOf(submitter, 'submitter', { ...base, ...section }, { ...context, queue, configId });

  function schedd(): HTCondorSchedd {
    const connection = submitter && connectionAt(submitter, base, context);
    if (connection instanceof HTCondorConnection) return connection.schedd;
    throw new Error('it is of another backend');
  }

  it("is the factory's own where no queue names the pool's", () => {
    lead('A', {});
    expect(schedd().logOfJobs(plain)).to.equal(join(context.stateDir, 'htcondor/events/LOCAL.log'));
    expect(schedd().logs.any).to.equal(true);
  });

  it("is not written for any queue while one of them names the pool's", () => {
    lead('A', {});
    lead('B', { eventLog: 'EventLog' });
    expect(schedd().logOfJobs(plain)).to.equal(undefined);
  });

  it("is written again after the queue was removed that named the pool's", () => {
    lead('A', {});
    lead('B', { eventLog: 'EventLog' });
    leaveQueue('B', context);
    expect(schedd().logOfJobs(plain)).to.equal(join(context.stateDir, 'htcondor/events/LOCAL.log'));
  });

  it("is written again after a change took the pool's log out of the queue", () => {
    lead('A', { eventLog: 'EventLog' }, 1);
    expect(schedd().logOfJobs(plain)).to.equal(undefined);
    lead('A', {}, 2);
    expect(schedd().logOfJobs(plain)).to.equal(join(context.stateDir, 'htcondor/events/LOCAL.log'));
  });

  it('is not read where all queues spool their jobs', () => {
    lead('A', { useSpool: true });
    expect(schedd().logs.any).to.equal(false);
  });
});
