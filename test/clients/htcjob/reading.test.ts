import { expect } from 'chai';
import { HtcJobReader } from '../../../src/clients/htcjob/reading.ts';
import type { HtcJob } from '../../../src/clients/htcjob/resource.ts';
import { type Clock, nextTurn, systemClock } from '../../../src/util/clock.ts';
import { htcJob } from '../../support/htc-jobs.ts';
import { kubeconfig, writeKubeconfig } from '../../support/kubernetes-client.ts';
import { files } from '../../support/operator-files.ts';
import { json, startScriptedServer } from '../../support/scripted-server.ts';
import { charactersLookedAt, mostMaskedInATurn } from '../../support/masked-characters.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('a list of HTCJobs beside the daemon', () => {
  it('hole 8: keeps no script in memory, also not the copy of kubectl', async () => {
    const server = await startScriptedServer();
    const configDir = temporaryDirectory();
    const options = { k8s_config_file: writeKubeconfig(kubeconfig({ server: server.url }), configDir) };
    const reader = new HtcJobReader(options, { clock: systemClock, random: () => 0.5, files, configDir });
    try {
      const source = 'echo of a script';
      const job = htcJob({ script: { image: 'centos', command: 'sh', source } });
      const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(job) };
      const items = [{ ...job, metadata: { ...job.metadata, annotations } }];
      server.next(json(200, { metadata: { resourceVersion: '1' }, items }));
      const found = await reader.list(undefined, new AbortController().signal);
      expect(found.map(({ metadata }) => metadata.name)).to.deep.equal(['zero']);
      expect(JSON.stringify(found)).not.to.contain(source);
    } finally {
      await reader.close();
      await server.stop();
    }
  });

  it('leaves out an object that does not say which HTCJob it is, and shows one without a spec beside the others', async () => {
    const server = await startScriptedServer();
    const configDir = temporaryDirectory();
    const options = { k8s_config_file: writeKubeconfig(kubeconfig({ server: server.url }), configDir) };
    const reader = new HtcJobReader(options, { clock: systemClock, random: () => 0.5, files, configDir });
    try {
      const items = [{ ...htcJob(), metadata: null }, { ...htcJob({}, 'bare'), spec: null }, htcJob()];
      server.next(json(200, { metadata: { resourceVersion: '1' }, items }));
      const found = await reader.list(undefined, new AbortController().signal);
      expect(found.map(({ metadata }) => metadata.name)).to.deep.equal(['bare', 'zero']);
    } finally {
      await reader.close();
      await server.stop();
    }
  });

  it('has no nulls in a status, in a list of HTCJobs or of one', async () => {
    const server = await startScriptedServer();
    const configDir = temporaryDirectory();
    const options = { k8s_config_file: writeKubeconfig(kubeconfig({ server: server.url }), configDir) };
    const reader = new HtcJobReader(options, { clock: systemClock, random: () => 0.5, files, configDir });
    try {
      const { signal } = new AbortController();
      const status = { active: 1, completionTime: null, conditions: [null], returnCodes: null };
      const items = [
        { ...htcJob(), status },
        { ...htcJob({}, 'without'), status: null },
      ];
      server.next(json(200, { metadata: { resourceVersion: '1' }, items }), json(200, items[0]));
      const found = [...(await reader.list(undefined, signal)), await reader.one('default/zero', signal)];
      const counting = { active: 1, conditions: [] };
      expect(found.map((one) => one.status)).to.deep.equal([counting, undefined, counting]);
    } finally {
      await reader.close();
      await server.stop();
    }
  });

  describe('and one of them, and its Events', () => {
    const token = 'opaque-0123456789abcdefghijklmnop';
    const login = `forwarded with Bearer ${token}`;
    const job = htcJob({ env: [{ name: 'SEEN', value: login }], htcopts: `+Seen = "${token}"` });
    const condition = { type: 'Waiting', status: 'True', reason: 'Paused', message: login };
    const annotations = { seen: JSON.stringify({ headers: { Authorization: login } }), [token]: 'x' };
    const item = {
      ...job,
      metadata: { ...job.metadata, annotations },
      status: { active: 1, conditions: [condition] },
    };

    async function withReader(
      read: (reader: HtcJobReader, server: Awaited<ReturnType<typeof startScriptedServer>>) => Promise<void>,
      clock: Clock = systemClock,
    ) {
      const server = await startScriptedServer();
      const configDir = temporaryDirectory();
      const access = kubeconfig({ server: server.url }, { token });
      const options = { k8s_config_file: writeKubeconfig(access, configDir) };
      const reader = new HtcJobReader(options, { clock, random: () => 0.5, files, configDir });
      try {
        await read(reader, server);
      } finally {
        await reader.close();
        await server.stop();
      }
    }

    it('hole 3: show our own login nowhere, where a server that answers has it again, and names as they are', () =>
      withReader(async (reader, server) => {
        const { signal } = new AbortController();
        const time = '2026-01-01T00:00:00Z';
        const event = { type: 'Warning', reason: 'Seen', message: login, lastTimestamp: time };
        const list = (items: readonly object[]) => json(200, { metadata: { resourceVersion: '1' }, items });
        server.next(list([item]), json(200, item), list([event]), json(200, item));
        const listed = await reader.list(undefined, signal);
        const one = await reader.one('default/zero', signal);
        const events = await reader.events(one, signal);
        for (const shown of [listed, one, events])
          expect(JSON.stringify(shown)).to.contain('(hidden)').and.not.contain(token);
        for (const { metadata } of [...listed, one]) {
          const { name, namespace, uid, resourceVersion } = job.metadata;
          expect(metadata).to.deep.include({ name, namespace, uid, resourceVersion });
        }
        expect(one.status?.active).to.equal(1);
        const message = 'forwarded with Bearer (hidden)';
        expect(events).to.deep.equal([{ time, type: 'Warning', reason: 'Seen', message }]);
        // What is written back must be what was read.
        const stored = await reader.oneStored('default/zero', signal);
        expect(stored.status?.conditions?.[0]?.message).to.equal(login);
      }));

    it('hole 8: Events are looked at as far as they are shown', () =>
      withReader(async (reader, server) => {
        const { signal } = new AbortController();
        const long = 'words '.repeat(5000);
        const event = { type: long, reason: long, message: `${login} ${long}`, lastTimestamp: long };
        const items = Array.from({ length: 20 }, () => event);
        server.next(json(200, item), json(200, { metadata: { resourceVersion: '1' }, items }));
        const one = await reader.one('default/zero', signal);
        let events: Awaited<ReturnType<typeof reader.events>> = [];
        const looked = await charactersLookedAt(async () => (events = await reader.events(one, signal)));
        // Some of it is the reading of the answer.
        expect(looked).to.be.within(1, 20 * 10_000);
        expect(events).to.have.length(20);
        for (const { time, type, reason, message } of events) {
          expect([time, type, reason].map(({ length }) => length)).to.deep.equal([128, 128, 128]);
          expect(message)
            .to.have.length(1024)
            .and.match(/^forwarded with Bearer \(hidden\) words/);
        }
      }));

    it('are written without our own login in a reason or message', () =>
      withReader(async (reader, server) => {
        const { signal } = new AbortController();
        server.next(json(200, item), json(200, item));
        const stored = await reader.oneStored('default/zero', signal);
        await reader.writeStatus(stored, stored.status ?? {}, signal);
        const { status } = JSON.parse(server.requests.at(-1)?.body ?? '') as typeof item;
        expect(status).to.deep.equal({
          active: 1,
          conditions: [{ ...condition, message: 'forwarded with Bearer (hidden)' }],
        });
      }));

    it('are shown without our own login in their names and versions', () =>
      withReader(async (reader, server) => {
        const odd = [{ name: `j-${token}` }, { uid: token }, { resourceVersion: `7${token}` }];
        const items = [...odd.map((meta) => ({ ...item, metadata: { ...item.metadata, ...meta } })), item];
        server.next(json(200, { metadata: { resourceVersion: '1' }, items }));
        const listed = await reader.list(undefined, new AbortController().signal);
        expect(listed.map(({ metadata }) => metadata.resourceVersion)).to.deep.equal([
          '7(hidden)',
          item.metadata.resourceVersion,
        ]);
      }));

    it('hole 8: are masked with turns for others in between, thousands of them, and long and deep ones', () =>
      withReader(async (reader, server) => {
        const { signal } = new AbortController();
        let deep: unknown = 'x';
        for (let at = 0; at < 3000; at++) deep = [deep];
        const before = `password=hunter5-first ${'password:'.repeat(100_000)}`;
        const long = { deep, text: before };
        const items = Array.from({ length: 1500 }, (_, at) => {
          return { ...item, metadata: { ...job.metadata, name: `n${at}` } };
        });
        const large = { ...item, metadata: { ...job.metadata, name: 'long', annotations: long } };
        server.next(json(200, { metadata: { resourceVersion: '1' }, items }), json(200, large));
        let [turns, isOver] = [0, false];
        const counting = (async () => {
          for (; !isOver; turns++) await nextTurn();
        })();
        const listed = await reader.list(undefined, signal);
        isOver = true;
        await counting;
        expect(listed).to.have.length(1500);
        expect(turns).to.be.greaterThan(1000);
        const { metadata } = await reader.one('default/long', signal);
        expect(JSON.stringify(metadata)).to.have.length.greaterThan(100_000).and.not.include('hunter5');
      }));

    it('one that is a hundred thousand texts is looked at in turns, and for the forms of secrets in the first thousand texts alone', async () => {
      const command = Array.from({ length: 99_900 }, (_, at) => `token=${at}`);
      let shown: HtcJob | undefined;
      let all = 0;
      const most = await mostMaskedInATurn((clock) =>
        withReader(async (reader, server) => {
          server.next(json(200, { ...item, spec: { ...job.spec, script: { ...job.spec.script, command } } }));
          const before = clock.monotonic();
          shown = await reader.one('default/zero', new AbortController().signal);
          // In 100 characters.
          all = 100 * (clock.monotonic() - before);
        }, clock),
      );
      expect(most).to.be.within(1, 2000);
      expect(all).to.be.within(1, 12_000);
      const list = shown?.spec.script.command ?? [];
      expect([list.length, list[0], list.at(-1)]).to.deep.equal([99_900, 'token=(hidden)', 'token=99899']);
    });

    it('is shown with as much of its script as is looked at in a turn', () =>
      withReader(async (reader, server) => {
        const source = 'echo a word\n'.repeat(100_000);
        server.next(json(200, { ...item, spec: { ...job.spec, script: { ...job.spec.script, source } } }));
        const looked = await charactersLookedAt(async () => {
          const { spec } = await reader.one('default/zero', new AbortController().signal);
          expect(spec.script.source).to.have.length.within(250_000, 270_000);
          expect(spec.script.source.endsWith('...')).to.equal(true);
        });
        // Each character is read once before.
        expect(looked).to.be.lessThan(source.length / 4 + 300_000);
      }));

    it('have no command, environment and long field in a list', () =>
      withReader(async (reader, server) => {
        const env = [{ name: 'A', value: 'b' }];
        const htcopts = '+A = 1\n'.repeat(5000);
        const jobid = Array.from({ length: 5000 }, (_, at) => `1.${at}`);
        const large = htcJob({ env, htcopts, queue: 5000, queueName: 'Q' });
        const items = [{ ...large, status: { active: 5000, jobid } }];
        server.next(json(200, { metadata: { resourceVersion: '1' }, items }));
        const [listed] = await reader.list(undefined, new AbortController().signal);
        const script = { ...large.spec.script, command: '', source: '' };
        expect(listed?.spec).to.deep.equal({ name: 'zero', script, queue: 5000, queueName: 'Q' });
        expect(listed?.status).to.deep.equal({ active: 5000 });
      }));

    for (const [what, read] of [
      ['a list', (reader: HtcJobReader, signal: AbortSignal) => reader.list(undefined, signal)],
      ['one', (reader: HtcJobReader, signal: AbortSignal) => reader.one('default/n1', signal)],
    ] as const)
      it(`are looked at no further once nobody waits for them, in ${what}`, () =>
        mostMaskedInATurn((clock) =>
          withReader(async (reader, server) => {
            const command = Array.from({ length: 1000 }, (_, at) => `token=${at} and words`);
            const message = 'token=1 '.repeat(50);
            const items = Array.from({ length: 100 }, (_, at) => ({
              ...htcJob({ script: { image: 'centos', command, source: '' } }, `n${at}`),
              status: { conditions: [{ ...condition, message }] },
            }));
            const list = { metadata: { resourceVersion: '1' }, items };
            server.next(json(200, what === 'one' ? items[1] : list));
            const stop = new AbortController();
            const begun = clock.monotonic();
            const asked = read(reader, stop.signal).then(
              () => 'shown',
              (error: unknown) => String(error),
            );
            while (clock.monotonic() === begun) await nextTurn();
            stop.abort(new Error('nobody waits'));
            expect(await asked).to.equal('Error: nobody waits');
            // All of it has 20,000 characters and more.
            expect(100 * (clock.monotonic() - begun)).to.be.lessThan(6000);
          }, clock),
        ));
  });
});
