import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  builtInTemplate,
  type FillContext,
  fillTemplate,
  loadTemplate,
  markOf,
} from '../../../src/plugins/local/template.ts';
import { files } from '../../support/operator-files.ts';
import { commandExists } from '../../../src/plugins/local/submitter.ts';
import { requirements, workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const context: FillContext = {
  factoryId: 'thresher-1',
  harvesterId: 'cern',
  hostname: 'wn1',
  directory: '/pilots/17',
};

async function load(text: string) {
  const file = join(temporaryDirectory(), 'pilot.yaml');
  writeFileSync(file, text);
  const loaded = await loadTemplate(files, file);
  return { file, loaded, problems: loaded.ok ? [] : loaded.problems };
}

describe('a local template', () => {
  it('gets the short name of this machine for ${hostname}', async () => {
    const { loaded } = await load('command: x\nargs: ["${hostname}"]\n');
    if (!loaded.ok) throw new Error('not loaded');
    const worker = workerOf(17);
    const whole = { ...context, hostname: 'wn1.site.org' };
    expect(fillTemplate(loaded.template, worker, whole).args).to.deep.equal(['wn1']);
  });

  it('needs no more than a command', async () => {
    expect((await load('command: pilot\n')).loaded).to.deep.equal({
      ok: true,
      template: { command: 'pilot', args: [], env: {} },
    });
  });

  it('ships with the program, and is right', async () => {
    const file = join(import.meta.dirname, '../../../templates/local/pilot.yaml');
    expect((await loadTemplate(files, file)).ok).to.equal(true);
  });

  it('may use what the shell knows in command and args', async () => {
    expect((await load('command: ${HOME}/pilot\nargs: ["${1:-x}", "${nothing}"]\n')).loaded.ok).to.equal(
      true,
    );
  });

  it('may use digits of the worker id and escapes everywhere', async () => {
    expect((await load('command: x\ncwd: /d/${_workerID_1.0}\nenv: { A: "$${own}" }\n')).loaded.ok).to.equal(
      true,
    );
  });

  for (const [what, text, pointer, line, message] of [
    ['no command', 'args: [a]\n', '', 1, 'in a local template "command" is missing here'],
    [
      'an unknown key',
      'command: a\nagrs: [b]\n',
      '/agrs',
      2,
      'in a local template "agrs" is not a known setting here; did you mean "args"?',
    ],
    [
      'args that are no list',
      'command: a\nargs: -c\n',
      '/args',
      2,
      'in a local template args is "-c"; it must be a list [ ... ]',
    ],
    [
      'a list in env',
      'command: a\nenv:\n  A: 1\n  B: [1]\n',
      '/env/B',
      4,
      'in a local template B is [1]; it must be one of a string, a number, true or false',
    ],
    [
      'cores in quotes',
      'command: a\n\ncpu: "2"\n',
      '/cpu',
      3,
      'in a local template cpu is "2"; it must be a number: write 2 without quotes',
    ],
    ['a list instead', '- a\n', '', 1, 'in a local template it is ["a"]; it must be an object { ... }'],
  ] as const) {
    it(`with ${what} is refused with its line`, async () => {
      const { file, problems } = await load(text);
      expect(problems).to.deep.equal([{ pointer, file, line, code: 'template-wrong', message }]);
    });
  }

  const known =
    'workerID, harvesterID, factoryID, hostname, queueName, computingSite, accessPoint, workerDir, ' +
    'nCore, minRamCount, maxDiskCount, maxWalltime, resourceType, jobType, pilotType, prodSourceLabel';

  it('with unknown placeholders in env or cwd is refused with the line of each', async () => {
    const { file, problems } = await load('command: a\nenv:\n  A: 1\n  B: ${workerId}\ncwd: /x/${nothing}\n');
    const code = 'unknown-placeholder';
    expect(problems).to.deep.equal([
      {
        pointer: '/env/B',
        file,
        line: 4,
        code,
        message: '"${workerId}" is not a placeholder; did you mean "workerID"?',
      },
      {
        pointer: '/cwd',
        file,
        line: 5,
        code,
        message: `"\${nothing}" is not a placeholder; there are ${known}`,
      },
    ]);
  });

  it('knows every placeholder that it says it knows', () => {
    const env = Object.fromEntries(known.split(', ').map((name) => [name.toUpperCase(), `<\${${name}}>`]));
    const filled = fillTemplate({ command: 'x', args: [], env }, workerOf(17), context).env;
    for (const name of known.split(', ')) expect(filled[name.toUpperCase()], name).not.to.match(/[${}]/);
  });

  it('that is no YAML is refused with its line', async () => {
    const { file, problems } = await load('command: a\nargs: [b\n');
    expect(problems[0]).to.include({ file, code: 'syntax', line: 3 });
  });

  it('that is not there is refused without one', async () => {
    const file = join(temporaryDirectory(), 'gone.yaml');
    const loaded = await loadTemplate(files, file);
    expect(loaded.ok ? [] : loaded.problems).to.deep.equal([
      {
        pointer: '',
        file,
        line: 0,
        code: 'file-unreadable',
        message: `cannot read the file: ENOENT: no such file or directory`,
      },
    ]);
  });

  it('with a name in env that no shell can read is refused', async () => {
    expect(
      (await load('command: a\nenv:\n  1-A: x\n')).problems.map(({ line, code }) => [line, code]),
    ).to.deep.equal([[3, 'template-wrong']]);
  });
});

describe('a filled template', () => {
  const template = {
    command: '/opt/${queueName}/pilot',
    args: ['--id', '${workerID}', 8, '${HOME}', '$${workerID}'],
    env: { A: '${computingSite}', N: 5, B: true, nCore: '99' },
  };
  const filled = fillTemplate(template, workerOf(17, { queue: 'CERN' }), context);

  it('has its placeholders replaced, and what is the shell’s left', () => {
    expect(filled.command).to.equal('/opt/CERN/pilot');
    expect(filled.args).to.deep.equal(['--id', '17', '8', '${HOME}', '${workerID}']);
    expect(filled.env).to.include({ A: 'CERN', N: '5', B: 'true' });
  });

  it('lets its own env win over the pilot’s', () => {
    expect(filled.env.nCore).to.equal('99');
  });

  it('cannot forge the mark by which the worker is found', () => {
    const forged = { command: 'x', args: [], env: { THRESHER_WORKER_DIR: '/other' } };
    const { env } = fillTemplate(forged, workerOf(17), context);
    expect(`THRESHER_WORKER_DIR=${env.THRESHER_WORKER_DIR ?? ''}`).to.equal(markOf('/pilots/17'));
  });

  it('works in the directory of the worker, or relative to it', () => {
    const cwd = (text: string) => fillTemplate({ ...template, cwd: text }, workerOf(17), context).cwd;
    expect(filled.cwd).to.equal('/pilots/17');
    expect(cwd('sub')).to.equal('/pilots/17/sub');
    expect(cwd('/data/${workerID}')).to.equal('/data/17');
  });

  it('takes the worker’s directory for an access point where there is none', () => {
    const access = (worker = workerOf(17)) =>
      fillTemplate({ command: '${accessPoint}', args: [], env: {} }, worker, context).command;
    expect(access()).to.equal('/pilots/17');
    expect(access(workerOf(17, { accessPoint: '/data/17' }))).to.equal('/data/17');
  });

  it('cannot be given another argument by a value', () => {
    const worker = workerOf(17, { computingSite: '"; rm -rf / #\n- evil ${workerID}' });
    const { args } = fillTemplate({ command: 'x', args: ['${computingSite}'], env: {} }, worker, context);
    expect(args).to.deep.equal(['"; rm -rf / #\n- evil ${workerID}']);
  });
});

describe('the environment of a pilot', () => {
  const environmentOf = (worker = workerOf(17)) => fillTemplate(builtInTemplate, worker, context).env;

  it('is that which Harvester gives', () => {
    expect(environmentOf()).to.deep.equal({
      HARVESTER_ID: 'cern',
      HARVESTER_WORKER_ID: '17',
      PANDA_JSID: 'harvester-cern',
      PANDA_HOSTNAME: 'wn1',
      THRESHER_FACTORY: 'thresher-1',
      THRESHER_WORKER_DIR: '/pilots/17',
      computingSite: 'Q',
      pandaQueueName: 'Q',
      resourceType: 'SCORE',
      jobType: 'unified',
      pilotType: 'PR',
      prodSourceLabel: 'unified',
      workerID: '17',
      submit_mode: 'PULL',
      PILOT_NOKILL: '1',
      nCore: '1',
      minRamCount: '2000',
      maxWalltime: '3600',
    });
  });

  it('keeps the PanDA pilot from ending orphans, unless the template lets it', () => {
    const template = { ...builtInTemplate, env: { PILOT_NOKILL: '' } };
    expect(environmentOf().PILOT_NOKILL).to.equal('1');
    expect(fillTemplate(template, workerOf(17), context).env.PILOT_NOKILL).to.equal('');
  });

  it('has the access point where there is one', () => {
    expect(environmentOf(workerOf(17, { accessPoint: '/data/17' })).accessPoint).to.equal('/data/17');
  });

  for (const [label, shown, jobType] of [
    ['managed', 'unified', 'unified'],
    ['user', 'unified', 'unified'],
    ['rc_test', 'rc_test', 'managed'],
  ] as const) {
    it(`calls pilots for ${label} jobs ${shown}`, () => {
      const worker = workerOf(17, { requirements: { ...requirements, prodSourceLabel: label } });
      expect(environmentOf(worker)).to.include({ prodSourceLabel: shown, jobType });
    });
  }
});

describe('the command of a template', () => {
  it('is found by its path or in PATH, when it may be executed', async () => {
    const directory = temporaryDirectory();
    const pilot = join(directory, 'pilot');
    expect(await commandExists(files, pilot, '')).to.equal(false);
    writeFileSync(pilot, '#!/bin/sh\n');
    chmodSync(pilot, 0o644);
    expect(await commandExists(files, pilot, '')).to.equal(false);
    chmodSync(pilot, 0o755);
    expect(await commandExists(files, pilot, '')).to.equal(true);
    expect(await commandExists(files, 'pilot', `/nowhere:${directory}`)).to.equal(true);
    expect(await commandExists(files, 'pilot', '/nowhere')).to.equal(false);
  });

  it('cannot be told before its placeholders are filled', async () => {
    expect(await commandExists(files, '/opt/${queueName}/pilot', '')).to.equal(true);
  });

  it('is no directory', async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'pilot'));
    expect(await commandExists(files, 'pilot', directory)).to.equal(false);
  });
});
