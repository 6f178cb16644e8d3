import { rmSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { stringify } from 'yaml';
import type { QueueView } from '../../src/daemon/view.ts';
import { runHere } from '../support/command-line.ts';
import {
  clearSpaces,
  clientOf,
  type CondorSpace,
  condorPool,
  condorSpace,
  type Pool,
} from '../support/htcondor.ts';
import { condorEnvironment, condorQueue, condorSite, shellTemplate } from '../support/htcondor-site.ts';
import type { RunningDaemon, Site } from '../support/site.ts';
import { removeDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

interface Mistake {
  readonly what: string;
  readonly template?: string;
  readonly submitter?: Readonly<Record<string, unknown>>;
  /** Of the lines of `check-config`, one of which it must be. */
  readonly said: RegExp;
  /** Its queue is there, but what it needs is not. */
  readonly incomplete?: true;
}

const sdf = 'universe = vanilla\nexecutable = /bin/true\n';
const oneLine = /has a new line or another control character; it must be one line of text \[wrong-type\]/;

const mistakes: Readonly<Record<string, Mistake>> = {
  SYNTAX: {
    what: 'a template that is no YAML',
    template: 'universe: vanilla\nenvironment: {\n',
    said: /SYNTAX\.yaml:\d+.* error: .*\[syntax\]/,
  },
  PLACEHOLDER: {
    what: 'an unknown placeholder',
    template: 'executable: /bin/true\narguments: ["${workerNo}"]\n',
    said: /PLACEHOLDER\.yaml:2.* error: "\$\{workerNo\}" is not a placeholder; .*\[unknown-placeholder\]/,
  },
  HARVESTERS: {
    what: "an unknown placeholder in Harvester's text",
    template: `${sdf}arguments = "{workerNo}"\nqueue 1\n`,
    said: /HARVESTERS\.sdf:3.* error: "\{workerNo\}" is not a placeholder; .*\[unknown-placeholder\]/,
  },
  SEVERAL: {
    what: 'a template that submits a hundred jobs',
    template: `${sdf}queue 100\n`,
    said: /SEVERAL\.sdf:3.* error: .*queue.*\[template-wrong\]/,
  },
  MISSING: {
    what: 'a template that is not there',
    submitter: { templateFile: 'none.yaml' },
    incomplete: true,
    said: /\/MISSING\/submitter\/templateFile.* error: .*none\.yaml.*\[file-unreadable\]/,
  },
  WRAPPER: {
    what: 'an executable that is not there',
    template: 'universe: vanilla\nexecutable: ${executableFile}\n',
    submitter: { executableFile: 'none.sh' },
    incomplete: true,
    said: /\/WRAPPER\/submitter\/executableFile.* error: .*none\.sh.* does not exist.*\[file-unreadable\]/,
  },
  LOGDIR: {
    what: 'a logDir where there is a file',
    submitter: { logDir: 'good.yaml/logs' },
    said: /\/LOGDIR\/submitter\/logDir.* error: .*good\.yaml of logDir is a file; it must be a directory \[wrong-type\]/,
  },
  GROUP: {
    what: 'an option with a second line',
    submitter: { accounting_group: 'atlas\nqueue 100' },
    said: new RegExp(`/GROUP/submitter/accounting_group.* error: "atlas\\\\nqueue 100" ${oneLine.source}`),
  },
  ENDPOINT: {
    what: 'a CE with a second line',
    submitter: { ceList: [{ ce_endpoint: 'ce1\nqueue 100' }] },
    said: new RegExp(`/ENDPOINT/submitter/ceList/0/ce_endpoint.* error: .*${oneLine.source}`),
  },
  ATTRIBUTE: {
    what: 'an attribute with a second line',
    submitter: { customSubmitAttributes: { Site: '1\nqueue 100' } },
    said: new RegExp(`/ATTRIBUTE/submitter/customSubmitAttributes/Site.* error: .*${oneLine.source}`),
  },
  'LINES\nqueue 100': {
    what: 'a second line in the name of the queue',
    said: new RegExp(` error: the name of the queue, "LINES\\\\nqueue 100", ${oneLine.source}`),
  },
};

/** Each of its characters means something to HTCondor, to a shell or to a ClassAd. */
const odd = `queue 100 "b" 'c' $(HOME) {e} \\ \${f} #,`;

/** One bad queue never stops the others. */
describe('a mistake in an HTCondor queue', () => {
  let pool: Pool;
  let space: CondorSpace;
  let site: Site;
  let wrapped: Record<string, unknown>;
  const writeWrapper = () => {
    writeFileSync(site.path('wrapper.sh'), '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });
  };
  let daemon: RunningDaemon | undefined;

  before(async () => {
    pool = await condorPool();
    space = condorSpace(pool);
    const endings: Readonly<Record<string, string>> = { HARVESTERS: 'sdf', SEVERAL: 'sdf' };
    const fileOf = (name: string) => `${name}.${endings[name] ?? 'yaml'}`;
    const wrong = Object.entries(mistakes).map(([name, { template, submitter }]) => {
      const file = template === undefined ? 'good.yaml' : fileOf(name);
      return [name, condorQueue(pool, { template: file, ...(submitter && { submitter }) })] as const;
    });
    const templates = Object.entries(mistakes).flatMap(([name, { template }]) =>
      template === undefined ? [] : [[fileOf(name), template] as const],
    );
    const good = shellTemplate(space, 'exec sleep 1000');
    wrapped = { ...good, executable: '${executableFile}', transfer_executable: true };
    site = condorSite(
      {
        queues: {
          GOOD: condorQueue(pool, { template: 'good.yaml' }),
          NOWHERE: condorQueue(pool, {
            template: 'good.yaml',
            submitter: { condorSchedd: 'nobody@pool.test', condorPool: pool.pool },
          }),
          REFUSED: condorQueue(pool, { template: 'refused.yaml' }),
          DOLLARS: condorQueue(pool, { template: 'odd.yaml', submitter: { pilot_args: '$$(Memory)' } }),
          EDITED: condorQueue(pool, { template: 'edited.yaml', submitter: { executableFile: 'wrapper.sh' } }),
          [odd]: condorQueue(pool, {
            template: 'odd.yaml',
            submitter: {
              pilot_args: '--x "y" $(HOME) queue 100',
              customSubmitAttributes: { custom: String.raw`"queue \"100\" $(HOME)"` },
            },
          }),
          ...Object.fromEntries(wrong),
        },
        settings: { master: { factoryId: space.factory } },
      },
      {
        'good.yaml': good,
        'edited.yaml': wrapped,
        'odd.yaml': { ...good, attributes: { site: '${computingSite}', args: '${pilotArgs}' } },
        'refused.yaml': { ...good, rank: '1 +' },
        ...Object.fromEntries(templates),
      },
    );
    writeWrapper();
  });

  after(async () => {
    await site.clean();
    await clearSpaces(pool, [space]);
  });

  for (const [name, { what, said }] of Object.entries(mistakes)) {
    it(`is found before anything starts: ${what}`, async () => {
      const { stdout, status } = await runHere('--config', site.config, 'check-config', name);
      const errors = stdout.split('\n').filter((line) => line.includes(' error: '));
      expect(errors.join('\n')).to.match(said);
      expect(status).to.equal(1);
    });
  }

  it('is none where a value only looks like one', async () => {
    const { stdout, status } = await runHere('--config', site.config, 'check-config', 'GOOD', odd);
    expect(stdout).not.to.contain(' error: ');
    expect(status).to.equal(0);
  });

  /** Started once, by whoever needs it first. */
  const started = () => (daemon ??= site.start([], condorEnvironment(pool, site.directory)));
  const running = (queue: string) => site.workers({ queue, status: 'running' });
  const reasonOf = (queue: string, code: string, said: RegExp) =>
    until(`${queue} shows ${code}`, async () => {
      const { reasons } = await site.queue(queue);
      return reasons.find((reason) => reason.code === code && said.test(reason.message));
    });

  it('stops that queue alone in a running daemon, and is what `thresher queues` shows', async () => {
    started();
    await until('the good one has its worker', async () => (await running('GOOD')).length === 1);
    const { stdout } = await site.run('queues', '--output', 'json');
    const queues = new Map((JSON.parse(stdout) as QueueView[]).map((queue) => [queue.name, queue]));
    for (const [name, { incomplete }] of Object.entries(mistakes)) {
      const { state, reasons = [] } = queues.get(name) ?? {};
      expect(state, name).to.equal(incomplete ? 'incomplete' : 'refused');
      expect(
        reasons.map(({ code }) => code),
        name,
      ).to.deep.equal([incomplete ? 'queue-incomplete' : 'queue-refused']);
    }
    expect(queues.get('GOOD')?.state).to.equal('running');
    const submitted = new Set((await site.workers()).map(({ queueName }) => queueName));
    expect([...submitted].filter((name) => Object.hasOwn(mistakes, name))).to.deep.equal([]);
  });

  it('is no other job where a value has quotes, macros and `queue` in it', async () => {
    started();
    await until('it runs', async () => (await running(odd)).length === 1);
    const [worker] = await site.workers({ queue: odd });
    const jobs = await clientOf(pool, 'local').queue(
      `${space.mine} && harvesterWorkerID == "${worker?.workerID ?? 0}"`,
      ['thresherQueue', 'site', 'args', 'custom'],
      AbortSignal.timeout(60_000),
    );
    expect(jobs).to.deep.equal([
      {
        thresherQueue: odd,
        site: odd,
        args: '--x "y" $(HOME) queue 100',
        custom: 'queue "100" $(HOME)',
      },
    ]);
    expect(await site.workers({ queue: odd })).to.have.length(1);
  });

  it('is a schedd that the collector does not know', async () => {
    started();
    await reasonOf('NOWHERE', 'not-listed', /nobody@pool\.test/);
    expect(await site.workers({ queue: 'NOWHERE' })).to.deep.equal([]);
  });

  it('is what condor_submit itself refuses, in its own words', async () => {
    started();
    const { message } = await reasonOf('REFUSED', 'submit-failed', /Rank/i);
    expect(message).to.match(/none of 1 was accepted: condor_submit for the local schedd.*/);
    const jobs = await clientOf(pool, 'local').queue(
      `${space.mine} && thresherQueue == "REFUSED"`,
      ['ClusterId'],
      AbortSignal.timeout(60_000),
    );
    expect(jobs).to.deep.equal([]);
  });

  it('is a value that HTCondor has no way to write', async () => {
    started();
    await reasonOf(
      'DOLLARS',
      'submit-failed',
      /the value of "pilotArgs", "\$\$\(Memory\)", has "\$\$" in it/,
    );
    const made = await site.workers({ queue: 'DOLLARS' });
    expect(made.map(({ batchID }) => batchID).filter((id) => id !== null)).to.deep.equal([]);
    expect(made.map(({ errorCode }) => errorCode)).to.include('htcondor-value');
  });

  for (const [what, breaks, mends, said] of [
    [
      'a template that is broken',
      () => {
        writeFileSync(site.path('edited.yaml'), 'executable: ${nobody}\n');
      },
      () => {
        writeFileSync(site.path('edited.yaml'), stringify(wrapped));
      },
      /edited\.yaml:1: "\$\{nobody\}" is not a placeholder/,
    ],
    [
      'an executable that is removed',
      () => {
        rmSync(site.path('wrapper.sh'));
      },
      () => {
        writeWrapper();
      },
      /the file \S+wrapper\.sh of executableFile is not there/,
    ],
    [
      'a logDir that is a file now',
      () => {
        removeDirectory(site.path('logs'));
        writeFileSync(site.path('logs'), '');
      },
      () => {
        rmSync(site.path('logs'));
      },
      /logs of logDir cannot be written: /,
    ],
  ] as const) {
    it(`that comes while the daemon runs stops the queue with its reason, and mended it goes on: ${what}`, async () => {
      started();
      const [worker] = await until('it has a worker', async () => {
        const all = await running('EDITED');
        return all.length === 1 && all;
      });
      breaks();
      await site.run('kill', String(worker?.workerID));
      await reasonOf('EDITED', 'preflight', said);
      const made = (await site.workers({ queue: 'EDITED' })).length;
      expect(await running('GOOD')).to.have.length(1);
      mends();
      await until('it goes on', async () => (await running('EDITED')).length === 1);
      // Nothing was tried meanwhile.
      expect(await site.workers({ queue: 'EDITED' })).to.have.length(made + 1);
    });
  }
});
