import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import type { RunConfiguration } from '../../../src/daemon/configuration.ts';
import { readServices, ServiceFile } from '../../../src/daemon/services/service-file.ts';
import { ServiceSet } from '../../../src/daemon/services/service-set.ts';
import type { Service, ServiceHealth, ServicePart } from '../../../src/daemon/services/service.ts';
import { stateDirAt } from '../../../src/daemon/state-dir.ts';
import { messageOf } from '../../../src/worker/errors.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { recordingLog } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const read = {} as RunConfiguration;
const never = () => new Promise<never>(() => undefined);

describe('the services of a daemon', () => {
  let clock: ManualClock;
  let log: ReturnType<typeof recordingLog>;
  let journal: string[];
  let told: (readonly ServiceHealth[])[];

  beforeEach(() => {
    clock = new ManualClock();
    log = recordingLog();
    journal = [];
    told = [];
  });

  function service(name: string, changes: Partial<Service> = {}): Service {
    return {
      name,
      required: true,
      begin: async () => {
        journal.push(`begin ${name}`);
      },
      reload: async () => {
        journal.push(`reload ${name}`);
      },
      stop: async () => {
        journal.push(`stop ${name}`);
      },
      health: () => [{ name }],
      ...changes,
    };
  }
  function setOf(...services: Service[]): ServiceSet {
    return new ServiceSet(services, { clock, log, changed: (health) => told.push(health) });
  }
  const states = (set: ServiceSet) => set.health.map(({ name, state }) => `${name} ${state}`);

  it('begin and are reloaded in their order, and are up', async () => {
    const set = setOf(service('one'), service('two'));
    expect(states(set)).to.deep.equal(['one starting', 'two starting']);
    await set.begin();
    await set.reload(read);
    expect(journal).to.deep.equal(['begin one', 'begin two', 'reload one', 'reload two']);
    expect(states(set)).to.deep.equal(['one up', 'two up']);
  });

  it('refuse the start when a required one cannot begin, and begin none after it', async () => {
    const bad = service('http', { begin: () => Promise.reject(new Error('the port is in use')) });
    const set = setOf(bad, service('after'));
    expect(await set.begin().catch(messageOf)).to.equal('the port is in use');
    expect(journal).to.deep.equal([]);
  });

  it('go on beside one that cannot begin, which is shown as failing with its reason', async () => {
    const bad = service('toy', { required: false, begin: () => Promise.reject(new Error('no key')) });
    const set = setOf(bad, service('queues'));
    await set.begin();
    await clock.settle();
    expect(states(set)).to.deep.equal(['toy failing', 'queues up']);
    expect(set.health[0]?.reason?.message).to.equal('no key');
    expect(told.at(-1)?.[0]?.state).to.equal('failing');
    await set.stop(0);
    expect(journal, 'it has nothing to stop').to.deep.equal(['begin queues', 'stop queues']);
  });

  it('are not delayed by one that hangs as it begins', async () => {
    const set = setOf(service('toy', { required: false, begin: never }), service('queues'));
    await set.begin();
    expect(states(set)).to.deep.equal(['toy starting', 'queues up']);
  });

  it('stop side by side, and last those that tell of the end', async () => {
    const set = setOf(service('http', { last: true }), service('one'), service('two'));
    await set.begin();
    journal = [];
    await set.stop(0);
    expect(journal).to.deep.equal(['stop one', 'stop two', 'stop http']);
    expect(states(set)).to.deep.equal(['http stopped', 'one stopped', 'two stopped']);
  });

  it('stop beside one that hangs, which costs its own deadline and is named in the log', async () => {
    const set = setOf(service('hangs', { stop: never }), service('one'));
    await set.begin();
    let over = false;
    const stopped = set.stop(clock.monotonic() + 20_000).then(() => (over = true));
    await clock.advance(1);
    expect(journal).to.include('stop one');
    await clock.advance(22_998);
    expect(over).to.equal(false);
    await clock.advance(1);
    await stopped;
    expect(log.lines.map(({ message, facts }) => [message, facts.service])).to.deep.equal([
      ['a service does not stop', 'hangs'],
    ]);
  });

  it('stop beside one that throws as it stops', async () => {
    const bad = service('bad', { stop: () => Promise.reject(new Error('no')) });
    const set = setOf(bad, service('one'));
    await set.begin();
    await set.stop(0);
    expect(states(set)).to.deep.equal(['bad stopped', 'one stopped']);
  });

  it('fail the reload when a required one does, and go on beside another that does', async () => {
    const reload = () => Promise.reject(new Error('no'));
    const beside = setOf(service('toy', { required: false, reload }), service('one'));
    await beside.begin();
    await clock.settle();
    await beside.reload(read);
    expect(journal).to.include('reload one');
    const required = setOf(service('queues', { reload }));
    await required.begin();
    expect(await required.reload(read).catch(messageOf)).to.equal('no');
  });

  it('say since when they are as they are, by the parts that operators know', async () => {
    let parts: ServicePart[] = [{ name: 'source toy' }];
    const set = setOf(service('sources', { health: () => parts }));
    await set.begin();
    const begun = clock.now();
    await clock.advance(5000);
    expect(set.health).to.deep.equal([{ name: 'source toy', state: 'up', since: begun }]);
    const trouble = { code: 'source-failed', message: 'm' };
    parts = [{ name: 'source toy', trouble }];
    set.changed();
    await clock.advance(5000);
    expect(set.health).to.deep.equal([
      { name: 'source toy', state: 'failing', since: begun + 5000, reason: trouble },
    ]);
  });

  it('are told of when something changed, and only then, whoever looked before', async () => {
    let parts: ServicePart[] = [{ name: 'toy' }];
    const set = setOf(service('sources', { health: () => parts }));
    await set.begin();
    set.changed();
    expect(told).to.have.length(1);
    parts = [{ name: 'toy', trouble: { code: 'c', message: 'm' } }];
    expect(states(set)).to.deep.equal(['toy failing']);
    set.changed();
    expect(told).to.have.length(2);
  });

  describe('in their file', () => {
    const health: ServiceHealth[] = [
      { name: 'queues', state: 'up', since: 1 },
      { name: 'source toy', state: 'failing', since: 2, reason: { code: 'c', message: 'm' } },
    ];

    it('are read as they were written, the last state of all', async () => {
      const dir = stateDirAt(temporaryDirectory());
      const file = new ServiceFile(dir, log);
      file.write([]);
      file.write([]);
      file.write(health);
      await file.written();
      expect(readServices(dir)).to.deep.equal(health);
      expect(log.lines).to.deep.equal([]);
    });

    it('are none where the file is missing, damaged, or of another form', () => {
      const dir = stateDirAt(temporaryDirectory());
      expect(readServices(dir)).to.deep.equal([]);
      for (const text of [
        '',
        '{',
        '{}',
        '[1, null, {"name": 7}]',
        '[{"name":"a","state":"well","since":1}]',
      ]) {
        writeFileSync(dir.services, text);
        expect(readServices(dir), text).to.deep.equal([]);
      }
    });

    it('cost a line in the log where the directory is gone, and nothing else', async () => {
      const dir = stateDirAt(`${temporaryDirectory()}/gone`);
      const file = new ServiceFile(dir, log);
      file.write(health);
      await file.written();
      expect(existsSync(dir.services)).to.equal(false);
      expect(log.lines.map(({ level }) => level)).to.deep.equal(['warn']);
    });

    it('are one line of JSON', async () => {
      const dir = stateDirAt(temporaryDirectory());
      const file = new ServiceFile(dir, log);
      file.write(health);
      await file.written();
      expect(readFileSync(dir.services, 'utf8')).to.equal(`${JSON.stringify(health)}\n`);
    });
  });
});
