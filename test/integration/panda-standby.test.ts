import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { Fault } from '../support/fault-proxy.ts';
import { PandaSite } from '../support/panda-site.ts';
import { newDatabase, sharedPostgresql } from '../support/postgresql.ts';
import type { RunningDaemon } from '../support/site.ts';
import { until } from '../support/until.ts';

const ordered = 3;

describe('an order of a real PanDA server, whose leader dies', () => {
  let panda: PandaSite;

  beforeEach(async () => {
    const server = await sharedPostgresql();
    panda = await PandaSite.start({
      settings: {
        master: { factoryId: `link${randomBytes(4).toString('hex')}` },
        database: { url: server.url(await newDatabase()), sslmode: 'disable', leaseDuration: 3 },
      },
    });
    panda.order({ SCORE: ordered });
  });

  afterEach(() => panda.clean());

  /** The server gives an order once: no daemon hears of it again. */
  async function expectCarriedOut(leader: RunningDaemon): Promise<void> {
    expect(await leader.ended, leader.output()).to.equal('SIGKILL');
    panda.proxy.heal();
    const { config } = panda.site;
    const elsewhere = ['--state-dir', panda.site.path('elsewhere')];
    panda.site.startWith(['--config', config, ...elsewhere, 'run']);
    await panda.untilServerHas(ordered, 'running');
    expect(panda.starts()).to.equal(ordered);
    panda.letEnd();
    await panda.untilServerHas(ordered, 'finished');
    await until('it is known how all have ended', async () => {
      const workers = await panda.site.workers();
      return workers.length === ordered && workers.every(({ status }) => status === 'finished');
    });
    expect(panda.starts()).to.equal(ordered);
    expect((await panda.commands()).map(({ status }) => status)).to.not.include('new');
  }

  it('before it acknowledges, is carried out once by a daemon with a state directory of its own', async () => {
    const started: { leader?: RunningDaemon } = {};
    const fault: Fault = { kind: 'cut-before', first: () => started.leader?.process.kill('SIGKILL') };
    panda.proxy.inject('acknowledge_commands', fault, { times: 1 });
    const leader = panda.site.start();
    started.leader = leader;
    await expectCarriedOut(leader);
  });

  it('before the intents, is carried out once by a daemon with a state directory of its own', async () => {
    await expectCarriedOut(panda.site.startCrashingAt('submit:before-intent'));
  });
});
