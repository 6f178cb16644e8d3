import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { PandaApi } from '../../../src/clients/panda/api.ts';
import { PandaClient } from '../../../src/clients/panda/client.ts';
import type { PandaLogin } from '../../../src/clients/panda/login.ts';
import { usualBounds } from '../../../src/clients/panda/outcome.ts';
import type { WorkerNews } from '../../../src/plugins/contracts/index.ts';
import { ActiveJobs } from '../../../src/sources/panda/jobs.ts';
import { ServerHealth } from '../../../src/sources/panda/server-health.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { answering, calls, carryingOut, largeAnswers, largeCommands } from '../../support/large-answers.ts';
import { recordingLog, requirements } from '../../support/samples.ts';

const { signal } = new AbortController();
const megabyte = 1024 * 1024;
const workers = 10_000;

/** For how long each holds the daemon up is in `npm run bench -- panda --part answers`: here stands what bounds it. */
describe('hole 8: answers of the PanDA server that are as large as they may be', () => {
  for (const [path, call] of Object.entries(calls)) {
    it(`are taken or refused with one short sentence: ${path}`, async () => {
      for (const [form, data] of Object.entries(largeAnswers)) {
        const api = answering(data);
        const clock = systemClock;
        const health = new ServerHealth({ clock, log: recordingLog() });
        const jobs = new ActiveJobs({ api, clock, health, harvesterId: 'h', interval: 1 });
        const outcome = await call(api);
        if (outcome.kind === 'failed') expect(outcome.message.length, form).to.be.lessThan(1000);
        if (path.startsWith('active')) {
          await jobs.turn(signal);
          expect(jobs.of('S0')?.activated).to.equal(undefined);
        }
      }
    });

    it(`are not read with more values than that: ${path}`, async () => {
      for (const one of ['1', '{}', '[]', '"x"']) {
        const outcome = await call(answering(`[${Array(usualBounds.values).fill(one).join(',')}]`));
        expect(outcome).to.include({ kind: 'failed', code: 'panda-no-answer', maybeDone: true });
        expect(JSON.stringify(outcome)).to.match(/an answer with more than 30000 values: .{1,200}/);
      }
    });
  }

  for (const [form, command] of Object.entries(largeCommands))
    it(`ask for no more than sites have, and the log has little of it: ${form}`, async () => {
      const log = recordingLog();
      let looks = 0;
      const living = Array.from({ length: workers }, (_, at) => {
        const worker = { workerId: at + 1, status: 'running', computingSite: 'S' };
        const news = {
          queue: 'S',
          origin: { uid: 'o', index: at },
          get worker() {
            looks++;
            return worker;
          },
        };
        return news as unknown as WorkerNews;
      });
      const { runner, orders, desk } = carryingOut(`[${command}]`, living, log);
      await runner.poll(desk, signal);
      expect(looks, 'looks at workers').to.be.at.most(5 * workers);
      const series = orders.seriesOf({ name: 'S', requirements }, ['S']);
      expect(series.flatMap(({ requests }) => [...requests])).to.have.length.at.most(20_000);
      expect(Object.keys(orders.orderOf('S')?.wanted ?? {})).to.have.length.at.most(100);
      expect(Object.keys(orders.orderOf('S')?.said ?? {})).to.have.length.at.most(100);
      expect(runner.shown).to.have.length(1);
      expect(JSON.stringify(log.lines).length).to.be.lessThan(2000);
      expect(JSON.stringify(runner.shown).length).to.be.lessThan(1000);
    });

  it('are not read further than that', async () => {
    let sent = 0;
    const piece = Buffer.alloc(64 * 1024, '1,');
    const server = createServer((_, response) => {
      response.write('{"success":true,"message":"","data":[');
      const more = () => {
        while (sent < 100 * megabyte && !response.destroyed) {
          sent += piece.length;
          if (!response.write(piece)) {
            response.once('drain', more);
            return;
          }
        }
        response.end('1]}');
      };
      more();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const login = {
      current: async () => ({ fingerprint: 'x', tls: {}, headers: {} }),
      forget: () => undefined,
    } as unknown as PandaLogin;
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = new PandaClient({ url, login, clock: systemClock, timeout: 30_000 });
    try {
      const outcome = await new PandaApi(client, 'h').acquireCommands(20, signal);
      expect(outcome).to.include({ kind: 'failed', code: 'panda-no-answer', maybeDone: true });
      expect(JSON.stringify(outcome)).to.include('acquire_commands is larger than 1048576 bytes');
      expect(sent).to.be.lessThan(50 * megabyte);
    } finally {
      await client.close();
      server.closeAllConnections();
      server.close();
    }
  });
});
