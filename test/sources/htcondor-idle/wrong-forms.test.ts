import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import { runHere } from '../../support/command-line.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const name = 'htcondor-idle';
const right = { name, slotAd: 'q.ad' };
/** The only shape of a queue. */
const shape = (changes: object) => ({ name, shapes: [{ name: 'a', slotAd: 'q.ad', ...changes }] });

/** Files beside the settings, by name. */
const files: Readonly<Record<string, string>> = {
  'pilot.yaml': 'command: exit 0\n',
  'q.ad': 'Cpus = 4\nMemory = 4000\nPartitionableSlot = true\n',
  'words.ad': 'no ad of a slot\n',
  'coreless.ad': 'Memory = 4000\n',
  'many.ad': 'Cpus = many\nMemory = 4000\n',
};

const local = (plugin: string) => ({ name: plugin, module: 'thresher/local' });
const queueWith = (demand: unknown) => ({
  mapType: 'NoJob',
  maxWorkers: 3,
  demand,
  submitter: { ...local('LocalSubmitter'), templateFile: 'pilot.yaml' },
  monitor: local('LocalMonitor'),
  sweeper: local('LocalSweeper'),
});

/** What check-config finds, without the directory, which is another one every time. */
async function checked(demand: unknown, source: unknown) {
  const directory = temporaryDirectory();
  const write = (file: string, content: object) => {
    writeFileSync(join(directory, file), JSON.stringify(content, null, 1));
  };
  for (const [file, text] of Object.entries(files)) writeFileSync(join(directory, file), text);
  mkdirSync(join(directory, 'tokens'));
  write('thresher.yaml', { master: { stateDir: 'state' }, sources: { [name]: source } });
  write('panda_queueconfig.json', { Q: queueWith(demand) });
  const { stdout, status } = await runHere('--config', join(directory, 'thresher.yaml'), 'check-config');
  const text = stdout
    .replaceAll(`${directory}/`, '')
    .replaceAll(`${relative(process.cwd(), directory)}/`, '');
  const lines = text.split('\n').map((line) => line.trim());
  return { status, found: lines.filter((line) => /: (error|warning|notice): /.test(line)) };
}

/** `[place, message]`: the place is `line /pointer` below the section. */
type Mistake = readonly [what: string, wrong: unknown, line: number, pointer: string, message: string];

const learn = '`thresher pool learn` writes one from a real worker';

/** The section `demand` begins in line 5. */
const ofQueues: readonly Mistake[] = [
  [
    'the bare name',
    name,
    5,
    '',
    'error: neither slotAd nor shapes is set: name the slot ad of a worker, which `thresher pool learn` writes [htcondor-idle-no-shape]',
  ],
  [
    'a slot ad that is no path',
    { ...right, slotAd: 5 },
    7,
    '/slotAd',
    'error: slotAd is 5; it must be a string [wrong-type]',
  ],
  [
    'an empty path',
    { ...right, slotAd: '' },
    7,
    '/slotAd',
    'error: slotAd is ""; it must have at least 1 character [wrong-type]',
  ],
  [
    'a slot ad that is not there yet',
    { ...right, slotAd: 'gone.ad' },
    7,
    '/slotAd',
    `warning: gone.ad, the slot ad: cannot read the file: ENOENT: no such file or directory; ${learn} [file-unreadable]`,
  ],
  [
    'a slot ad that is none',
    { ...right, slotAd: 'words.ad' },
    7,
    '/slotAd',
    `warning: words.ad, the slot ad: it has no attribute in the form \`NAME = VALUE\`, so it is no ad of a slot; ${learn} [htcondor-idle-slot-ad]`,
  ],
  [
    'a machine without cores',
    { ...right, slotAd: 'coreless.ad' },
    7,
    '/slotAd',
    `warning: coreless.ad, the slot ad: it has no Cpus, so no job could ever run on it; ${learn} [htcondor-idle-slot-ad]`,
  ],
  [
    'a machine whose cores are no number',
    { ...right, slotAd: 'many.ad' },
    7,
    '/slotAd',
    `warning: many.ad, the slot ad: cpus is many: it must be a number of 0 or more; ${learn} [htcondor-idle-slot-ad]`,
  ],
  ['no cost', { ...right, cost: 0 }, 8, '/cost', 'error: cost is 0; it must be > 0 [wrong-type]'],
  [
    'a cost in words',
    { ...right, cost: 'low' },
    8,
    '/cost',
    'error: cost is "low"; it must be a number [wrong-type]',
  ],
  ['less than none', { ...right, most: -1 }, 8, '/most', 'error: most is -1; it must be >= 0 [wrong-type]'],
  [
    'half a worker',
    { ...right, most: 1.5 },
    8,
    '/most',
    'error: most is 1.5; it must be an integer [wrong-type]',
  ],
  [
    'a number in quotes',
    { ...right, most: '3' },
    8,
    '/most',
    'error: most is "3"; it must be an integer: write 3 without quotes [wrong-type]',
  ],
  [
    'no worker at each look',
    { ...right, perCycle: 0 },
    8,
    '/perCycle',
    'error: perCycle is 0; it must be >= 1 [wrong-type]',
  ],
  [
    'a pressure that is a number',
    { ...right, pressure: 5 },
    8,
    '/pressure',
    'error: pressure is 5; it must be an object { ... } [wrong-type]',
  ],
  [
    'a pressure of none',
    { ...right, pressure: { least: 0 } },
    9,
    '/pressure/least',
    'error: least is 0; it must be >= 1 [wrong-type]',
  ],
  [
    'a share above all',
    { ...right, pressure: { share: 25 } },
    9,
    '/pressure/share',
    'error: share is 25; it must be <= 1 [wrong-type]',
  ],
  [
    'a slip in an option of the pressure',
    { ...right, pressure: { shares: 0.1 } },
    9,
    '/pressure/shares',
    `warning: ${name} does not read "shares"; did you mean "share"? [unread-option]`,
  ],
  [
    'a word for yes',
    { ...right, nonePending: 'yes' },
    8,
    '/nonePending',
    'error: nonePending is "yes"; it must be true or false [wrong-type]',
  ],
  [
    'no shape',
    { name, shapes: [] },
    7,
    '/shapes',
    'error: shapes is []; it must have at least 1 item [wrong-type]',
  ],
  [
    'shapes by name',
    { name, shapes: {} },
    7,
    '/shapes',
    'error: shapes is {}; it must be a list [ ... ] [wrong-type]',
  ],
  [
    'a shape that is a name',
    { name, shapes: ['a'] },
    8,
    '/shapes/0',
    'error: shapes[0] is "a"; it must be an object { ... } [wrong-type]',
  ],
  [
    'a shape without a name',
    { name, shapes: [{ slotAd: 'q.ad' }] },
    8,
    '/shapes/0',
    'error: "name" is missing here [wrong-type]',
  ],
  [
    'a shape without a slot ad',
    { name, shapes: [{ name: 'a' }] },
    8,
    '/shapes/0',
    'error: "slotAd" is missing here [wrong-type]',
  ],
  [
    'a shape whose slot ad is not there yet',
    shape({ slotAd: 'gone.ad' }),
    10,
    '/shapes/0/slotAd',
    `warning: gone.ad, the slot ad: cannot read the file: ENOENT: no such file or directory; ${learn} [file-unreadable]`,
  ],
  [
    'a name that no key can have',
    shape({ name: 'a/b' }),
    9,
    '/shapes/0/name',
    'error: name is "a/b"; it must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$ [wrong-type]',
  ],
  [
    'two shapes of one name',
    { name, shapes: ['a', 'a'].map((one) => ({ name: one, slotAd: 'q.ad' })) },
    13,
    '/shapes/1/name',
    'error: the shapes 1 and 2 are both called "a": give each its own name [wrong-type]',
  ],
  [
    'a slot ad beside shapes',
    { ...right, ...shape({}) },
    7,
    '/slotAd',
    'error: slotAd stands beside shapes: each shape has its own; remove it here, or remove shapes [wrong-type]',
  ],
  [
    'a cost beside shapes',
    { cost: 2, ...shape({}) },
    6,
    '/cost',
    'error: cost stands beside shapes: each shape has its own; remove it here, or remove shapes [wrong-type]',
  ],
  [
    'a shape without cores',
    shape({ nCore: 0 }),
    11,
    '/shapes/0/nCore',
    'error: nCore is 0; it must be >= 1 [wrong-type]',
  ],
  [
    'memory with a unit',
    shape({ minRamCount: '4 GB' }),
    11,
    '/shapes/0/minRamCount',
    'error: minRamCount is "4 GB"; it must be an integer [wrong-type]',
  ],
  [
    'a life of less than nothing',
    shape({ maxWalltime: -1 }),
    11,
    '/shapes/0/maxWalltime',
    'error: maxWalltime is -1; it must be >= 0 [wrong-type]',
  ],
  [
    'a value that is no text',
    shape({ values: { size: 5 } }),
    12,
    '/shapes/0/values/size',
    'error: size is 5; it must be a string [wrong-type]',
  ],
  [
    'a value that no template can name',
    shape({ values: { 'a-b': 'x' } }),
    12,
    '/shapes/0/values/a-b',
    'error: "a-b" is no name that may stand here: it must fit ^[A-Za-z][A-Za-z0-9_]*$ [wrong-type]',
  ],
  [
    'a slip in an option of a shape',
    shape({ Most: 5 }),
    11,
    '/shapes/0/Most',
    `warning: ${name} does not read "Most"; did you mean "most"? [unread-option]`,
  ],
];

/** The section begins in line 6. */
const ofSettings: readonly Mistake[] = [
  [
    'a section that is a word',
    'cm.test',
    6,
    '',
    `error: ${name} is "cm.test"; it must be an object { ... } [wrong-type]`,
  ],
  [
    'a pool that is a port',
    { condorPool: 9618 },
    7,
    '/condorPool',
    'error: condorPool is 9618; it must be a string [wrong-type]',
  ],
  [
    'an empty pool',
    { condorPool: '' },
    7,
    '/condorPool',
    'error: condorPool is ""; it must have at least 1 character [wrong-type]',
  ],
  [
    'a slip in an option',
    { condorpool: 'cm.test' },
    7,
    '/condorpool',
    `error: sources.${name} does not read "condorpool"; did you mean "condorPool"? [unknown-setting]`,
  ],
  [
    'a schedd that is no list',
    { schedds: 'a' },
    7,
    '/schedds',
    'error: schedds is "a"; it must be a list [ ... ] [wrong-type]',
  ],
  [
    'no schedd',
    { schedds: [] },
    7,
    '/schedds',
    'error: schedds is []; it must have at least 1 item [wrong-type]',
  ],
  [
    'a schedd without a name',
    { schedds: [5] },
    8,
    '/schedds/0',
    'error: schedds[0] is 5; it must be a string [wrong-type]',
  ],
  [
    'an interval in words',
    { interval: 'often' },
    7,
    '/interval',
    'error: interval is "often"; it must be a number [wrong-type]',
  ],
  [
    'no pause between looks',
    { interval: 0 },
    7,
    '/interval',
    'error: interval is 0; it must be >= 0.1 [wrong-type]',
  ],
  [
    'less than a look a day',
    { interval: 90_000 },
    7,
    '/interval',
    'error: interval is 90000; it must be <= 86400 [wrong-type]',
  ],
  [
    'no time to join',
    { joinTimeout: 0 },
    7,
    '/joinTimeout',
    'error: joinTimeout is 0; it must be >= 1 [wrong-type]',
  ],
  [
    'a time to join that no look can see',
    { interval: 60, joinTimeout: 30 },
    8,
    '/joinTimeout',
    'error: joinTimeout is 30 s, less than the interval of 60 s: each worker would count as lost before the first look that can see it; set it to several intervals [wrong-type]',
  ],
  [
    'an identity without a domain',
    { tokenIdentity: 'worker' },
    7,
    '/tokenIdentity',
    String.raw`error: tokenIdentity is "worker"; it must match ^[^@\s]+@[^@\s]+$ [wrong-type]`,
  ],
  [
    'a key with a path for its name',
    { signingKeyName: 'a/b' },
    7,
    '/signingKeyName',
    'error: signingKeyName is "a/b"; it must match ^[A-Za-z0-9._-]+$ [wrong-type]',
  ],
  [
    'a short-lived token',
    { tokenLifetime: 5 },
    7,
    '/tokenLifetime',
    'error: tokenLifetime is 5; it must be >= 60 [wrong-type]',
  ],
  [
    'a lifetime with a unit',
    { tokenLifetime: '1d' },
    7,
    '/tokenLifetime',
    'error: tokenLifetime is "1d"; it must be an integer [wrong-type]',
  ],
  ...['signingKeyFile', 'condorConfig', 'tokenDirectory'].map((key): Mistake => [
    `a ${key} that is not there`,
    { [key]: 'gone' },
    7,
    `/${key}`,
    `error: ${key} leads to gone, which the user of the daemon cannot read: ENOENT: no such file or directory [file-unreadable]`,
  ]),
  ...['signingKeyFile', 'condorConfig'].map((key): Mistake => [
    `a ${key} that is a directory`,
    { [key]: 'tokens' },
    7,
    `/${key}`,
    `error: ${key} leads to tokens, which is a directory; it must be a file [wrong-type]`,
  ]),
  [
    'a tokenDirectory that is a file',
    { tokenDirectory: 'q.ad' },
    7,
    '/tokenDirectory',
    'error: tokenDirectory leads to q.ad, which is no directory; it must be a directory [wrong-type]',
  ],
];

describe('check-config, for the demand of a HTCondor pool', () => {
  it('finds nothing in the right forms', async () => {
    const shapes = [{ name: 'a', slotAd: 'q.ad', cost: 2, most: 0, values: { size: 'x' } }];
    const full = { name, shapes, most: 3, perCycle: 1, pressure: {}, nonePending: true };
    const source = {
      condorPool: 'cm.test:9618',
      schedds: ['a'],
      tokenDirectory: 'tokens',
      tokenLifetime: 60,
    };
    for (const [demand, options] of [
      [right, {}],
      [full, source],
    ] as const)
      expect(await checked(demand, options)).to.deep.equal({ status: 0, found: [] });
  });

  for (const [what, wrong, line, pointer, message] of ofQueues)
    it(`finds ${what} in a queue: file, line, place, and the right form`, async () => {
      const { status, found } = await checked(wrong, {});
      expect(found).to.deep.equal([`panda_queueconfig.json:${line} /Q/demand${pointer}: ${message}`]);
      expect(status).to.equal(message.startsWith('error') ? 1 : 0);
    });

  for (const [what, wrong, line, pointer, message] of ofSettings)
    it(`finds ${what} in the settings: file, line, place, and the right form`, async () => {
      const { status, found } = await checked(right, wrong);
      expect(found[0]).to.equal(`thresher.yaml:${line} /sources/${name}${pointer}: ${message}`);
      // The queue that names the source says why it does not run.
      expect(found.slice(1).every((one) => one.includes(`demand is ${name}, which does not run: `))).to.equal(
        true,
      );
      expect(status).to.equal(1);
    });
});
