import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import { temporaryDirectory } from '../support/temporary.ts';
import {
  copiedTree,
  has,
  type Files,
  type Outcome,
  plant,
  root,
  run,
  runStep,
  steps,
} from './copied-tree.ts';

/** Enough of the sources for tools that look at one file at a time. They import no package, whose types would take longest to read. */
const fewSources = [
  ...['src/codes', 'src/util/clock.ts', 'src/util/duration.ts'],
  // Without the long one.
  ...['errors', 'observation', 'payload', 'reason', 'status', 'worker'].map(
    (name) => `src/worker/${name}.ts`,
  ),
];

interface Planted {
  readonly file: string;
  readonly text: string;
  /** The rule that must trip, and no other. */
  readonly rule: string;
}

const filesOf = (plants: readonly Planted[]): Files =>
  Object.fromEntries(plants.map(({ file, text }) => [file, text]));

const lines = (plants: readonly Planted[]): string[] =>
  plants.map(({ file, rule }) => `${file}: ${rule}`).sort();

describe('scripts/test', () => {
  it('has no check without a planted violation here', () => {
    expect([...steps().keys()]).to.deep.equal(['lint', 'format', 'types', 'layers', 'build', 'tests']);
  });

  const starts = [
    ...['htcondor start', 'kubernetes build', 'kubernetes start', 'kubernetes image'],
    ...['panda start', 'panda pilot'],
  ];
  const stops = ['kubernetes stop', 'htcondor stop', 'panda stop'];

  /** The scripts alone, with stand-ins for all that they call. */
  const bareTree = (): string => {
    const tree = temporaryDirectory();
    cpSync(join(root, 'scripts'), join(tree, 'scripts'), { recursive: true });
    const tools = ['c8', 'depcruise', 'eslint', 'mocha', 'npm', 'prettier', 'tsc'];
    const tool =
      '#!/bin/sh\necho "$(basename "$0")" >>called\n[ "$(basename "$0") $*" != "$(cat failing)" ]\n';
    plant(tree, {
      'package-lock.json': '{}',
      // The packages count as installed: nothing is fetched.
      'node_modules/.installed': '{}',
      'node_modules/node/bin/.keep': '',
      ...Object.fromEntries(tools.map((name) => [`node_modules/.bin/${name}`, tool])),
      // In place of the tests.
      'test/support/gate.ts': `import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
const { THRESHER_TEST_ENVIRONMENT: starting } = process.env;
while (starting !== undefined && !existsSync(starting + '/ended')) await setTimeout(20);
if (starting !== undefined && readFileSync(starting + '/ended', 'utf8') !== '0\\n') {
  console.log(readFileSync(starting + '/log', 'utf8'));
  process.exit(1);
}
appendFileSync('called', ['gate', ...process.argv.slice(2)].join(' ') + '\\n');
if (readFileSync('failing', 'utf8') === 'node test/support/gate.ts') process.exitCode = 1;
`,
      // In place of the real systems: what of them is built, started and stopped.
      'scripts/test-env': '#!/bin/sh\necho "$1 $2" >>called\n[ "$1 $2" != "$(cat failing)" ]\n',
    });
    for (const name of tools) chmodSync(join(tree, 'node_modules/.bin', name), 0o755);
    symlinkSync(process.execPath, join(tree, 'node_modules/node/bin/node'));
    symlinkSync(process.execPath, join(tree, 'node_modules/.bin/node'));
    return tree;
  };
  /** Runs scripts/test there, with one command that fails. */
  const runWith = async (
    tree: string,
    failing: string,
    args: readonly string[] = [],
  ): Promise<Outcome & { called: string[] }> => {
    plant(tree, { failing, called: '' });
    const path = `${join(tree, 'node_modules/.bin')}:${process.env.PATH ?? ''}`;
    const outcome = await run(['scripts/test', ...args], tree, path);
    return { ...outcome, called: readFileSync(join(tree, 'called'), 'utf8').trimEnd().split('\n') };
  };

  it('fails when one of its checks fails, and passes when none does', async () => {
    const tree = bareTree();
    const statuses = new Map<string, number>();
    for (const [name, command] of [['none', []] as const, ...steps()]) {
      const { status, called } = await runWith(tree, command.join(' '));
      statuses.set(name, status);
      expect(called.slice(-stops.length), name).to.deep.equal(stops);
    }
    const failing = [...statuses].filter(([, status]) => status !== 0).map(([name]) => name);
    expect(failing).to.deep.equal([...steps().keys()]);
  });

  it('has the real systems built and started before the tests, and stopped after them', async () => {
    const { called, output } = await runWith(bareTree(), '');
    const relevant = called.filter((name) => /^(kubernetes|htcondor|panda|gate)\b/.test(name));
    expect(relevant, output).to.deep.equal([...starts, 'gate', ...stops]);
  });

  it('runs only the tests that are asked for, without asking for coverage, and fails when they fail', async () => {
    const args = ['--grep', 'promise 1'];
    const passed = await runWith(bareTree(), '', args);
    expect(passed.status, passed.output).to.equal(0);
    expect(passed.called).to.include('mocha').and.not.include('gate');
    const failed = await runWith(bareTree(), 'mocha --grep promise 1', args);
    expect(failed.status, failed.output).to.equal(1);
    expect(failed.called.slice(-stops.length)).to.deep.equal(stops);
  });

  it('leaves nothing out in a soak, and takes no part of one', async () => {
    const { called, output } = await runWith(bareTree(), '', ['soak']);
    const relevant = called.filter((name) => /^(kubernetes|htcondor|panda|gate)\b/.test(name));
    expect(relevant, output).to.deep.equal([...starts, 'gate soak', ...stops]);
    const again = await runWith(bareTree(), '', ['soak', '--repeat', '3', 'a.test.ts']);
    expect(again.called, again.output).to.include('gate repeat 3 a.test.ts').and.not.include('eslint');
    for (const [args, says] of [
      [['soak', '--repeat', '0', 'a.test.ts'], 'usage: '],
      [['soak', '--repeat', '3'], 'usage: '],
      [['soak', 'a.test.ts'], 'a soak runs every test'],
    ] as const) {
      const wrong = await runWith(bareTree(), '', args);
      expect(wrong.status).to.equal(2);
      expect(wrong.output).to.include(says);
      expect(wrong.called.join()).to.equal('');
    }
  });

  it('starts no real systems for the tiers that need none, and runs neither checks nor coverage', async () => {
    for (const [tier, called] of [
      ['unit', ['mocha']],
      ['promises', ['sweep ', 'tsc', 'mocha']],
    ] as const) {
      const passed = await runWith(bareTree(), '', [tier]);
      expect(passed.status, passed.output).to.equal(0);
      expect(passed.called).to.deep.equal(called);
      const failed = await runWith(bareTree(), 'mocha ', [tier]);
      expect(failed.status, failed.output).to.equal(1);
    }
  });

  it('runs the tier of the real systems on them, and fails when it fails', async () => {
    const { called, output } = await runWith(bareTree(), '', ['--durations', 'systems']);
    const relevant = called.filter((name) => /^(kubernetes|htcondor|panda|mocha|gate|eslint)\b/.test(name));
    expect(relevant, output).to.deep.equal([...starts, 'mocha', ...stops]);
    expect((await runWith(bareTree(), 'mocha ', ['systems'])).status).to.equal(1);
  });

  for (const action of starts) {
    it(`fails when ${action} of the real systems fails, shows why, and tests nothing`, async () => {
      const tree = bareTree();
      plant(tree, {
        'scripts/test-env': `${readFileSync(join(tree, 'scripts/test-env'), 'utf8')}[ $? = 0 ] || { echo "no luck" >&2; exit 1; }\n`,
      });
      const { status, output, called } = await runWith(tree, action);
      expect(status, output).to.equal(1);
      expect(output).to.include('no luck\n');
      expect(called).to.include('tsc').and.not.include('gate');
      expect(called.slice(-stops.length)).to.deep.equal(stops);
    });
  }

  it('waits for no build when a check failed, and says nothing of it', async () => {
    const tree = bareTree();
    const slow =
      '#!/bin/sh\necho "$1 $2" >>called\ncase "$1 $2" in sweep* | *stop) ;; *) exec sleep 1000 ;; esac\n';
    plant(tree, { 'scripts/test-env': slow });
    const { status, output, called } = await runWith(tree, steps().get('lint')?.join(' ') ?? '');
    expect({ status, output }).to.deep.equal({
      status: 1,
      output: '== format\n== types\n== layers\n== build\n== lint\n',
    });
    expect(called.slice(-stops.length)).to.deep.equal(stops);
  });
});

describe('planted violations: format', () => {
  const bad: Files = {
    'src/planted.ts': 'export const a = {b:1}\n',
    'etc/planted.yaml': 'a:   {b: 1}\n',
    'docs/planted.md': '* a\n\n\n* b\n',
  };

  it('passes on an unviolated copy', async () => {
    expect(await runStep('format', copiedTree(fewSources))).to.include({ status: 0, output: '' });
  });

  it('trips', async () => {
    const { status, output } = await runStep('format', copiedTree(fewSources, bad));
    expect(status, output).to.not.equal(0);
    for (const file of Object.keys(bad)) expect(output).to.include(`[warn] ${file}`);
  });
});

describe('planted violations: types', () => {
  const plants: readonly Planted[] = [
    { file: 'src/planted/enum.ts', text: 'export enum Colour {\n  red,\n}\n', rule: 'TS1294' },
    {
      file: 'src/planted/parameter-property.ts',
      text: 'export class Planted {\n  constructor(readonly a: number) {}\n}\n',
      rule: 'TS1294',
    },
    {
      file: 'src/planted/index-access.ts',
      text: 'export const first = (list: readonly string[]): string => list[0];\n',
      rule: 'TS2322',
    },
    {
      file: 'src/planted/optional.ts',
      text: 'interface Options {\n  readonly a?: string;\n}\nexport const options: Options = { a: undefined };\n',
      rule: 'TS2375',
    },
    {
      file: 'src/planted/override.ts',
      text: 'class Base {\n  run(): void {}\n}\nexport class Derived extends Base {\n  run(): void {}\n}\n',
      rule: 'TS4114',
    },
    {
      file: 'src/planted/return.ts',
      text: 'export function a(b: boolean): number | undefined {\n  if (b) return 1;\n}\n',
      rule: 'TS7030',
    },
    {
      file: 'src/planted/fall-through.ts',
      text: "export function a(b: string): void {\n  switch (b) {\n    case 'a':\n      a('b');\n    case 'b':\n      a('c');\n  }\n}\n",
      rule: 'TS7029',
    },
    {
      file: 'src/planted/type-import.ts',
      text: "import { Clock } from '../util/clock.ts';\nexport type Planted = Clock;\n",
      rule: 'TS1484',
    },
    { file: 'src/planted/unused.ts', text: 'const a = 1;\nexport {};\n', rule: 'TS6133' },
    { file: 'src/planted/null.ts', text: 'export const a: string = null;\n', rule: 'TS2322' },
    { file: 'test/planted.test.ts', text: "export const a: number = 'b';\n", rule: 'TS2322' },
    { file: 'scripts/planted.ts', text: "export const a: number = 'b';\n", rule: 'TS2322' },
    { file: 'bench/planted.ts', text: "export const a: number = 'b';\n", rule: 'TS2322' },
  ];

  // The same compiler passes on an unviolated copy: see the build.
  it('trips, and for nothing else', async () => {
    const planted = await runStep('types', copiedTree(fewSources, filesOf(plants)));
    expect(planted.status).to.not.equal(0);
    const found = [...planted.stdout.matchAll(/^(\S+?)\(\d+,\d+\): error (TS\d+):/gm)];
    expect(found.map(([, file = '', code = '']) => `${file}: ${code}`).sort()).to.deep.equal(lines(plants));
  });
});

describe('planted violations: lint', () => {
  const work = 'declare function work(): Promise<void>;\n';
  const plants: readonly Planted[] = [
    {
      file: 'src/planted/floating.ts',
      text: `${work}export function start(): void {\n  work();\n}\n`,
      rule: '@typescript-eslint/no-floating-promises',
    },
    {
      file: 'src/planted/floating-void.ts',
      text: `${work}export function start(): void {\n  void work();\n}\n`,
      rule: '@typescript-eslint/no-floating-promises',
    },
    {
      file: 'src/planted/floating-then.ts',
      text: `${work}export function start(): void {\n  work().then(() => undefined);\n}\n`,
      rule: '@typescript-eslint/no-floating-promises',
    },
    {
      file: 'src/planted/misused.ts',
      text: `${work}export function start(list: readonly string[]): void {\n  list.forEach(async () => {\n    await work();\n  });\n}\n`,
      rule: '@typescript-eslint/no-misused-promises',
    },
    {
      file: 'src/planted/any.ts',
      text: 'export const a: any = 1;\n',
      rule: '@typescript-eslint/no-explicit-any',
    },
    {
      file: 'src/planted/unsafe.ts',
      text: "export const a: string = JSON.parse('1');\n",
      rule: '@typescript-eslint/no-unsafe-assignment',
    },
    {
      file: 'src/planted/switch.ts',
      text: "export function a(b: 'c' | 'd'): number {\n  switch (b) {\n    case 'c':\n      return 1;\n  }\n  return 2;\n}\n",
      rule: '@typescript-eslint/switch-exhaustiveness-check',
    },
    {
      file: 'src/planted/type-import.ts',
      text: "import { Clock } from '../util/clock.ts';\nexport type Planted = Clock;\n",
      rule: '@typescript-eslint/consistent-type-imports',
    },
    {
      file: 'src/planted/template.ts',
      text: 'export const a = (b: Date): string => `${b}`;\n',
      rule: '@typescript-eslint/restrict-template-expressions',
    },
    {
      file: 'src/planted/random.ts',
      text: 'export const a = Math.random();\n',
      rule: 'no-restricted-properties',
    },
    {
      file: 'src/planted/random-taken.ts',
      text: 'export const { random } = Math;\n',
      rule: 'no-restricted-properties',
    },
    {
      file: 'src/planted/now.ts',
      text: 'export const a = Date.now();\n',
      rule: 'no-restricted-properties',
    },
    {
      file: 'src/planted/spread.ts',
      text: 'export const a = { ...{ b: 1, c: 2 } };\n',
      rule: 'no-restricted-syntax',
    },
    {
      file: 'test/planted/spread.ts',
      text: 'export const a = { ...{ b: 1, c: 2 } };\n',
      rule: 'no-restricted-syntax',
    },
    ...['', '.trim()'].map((between, at) => ({
      file: `src/planted/late-cut-${at}.ts`,
      text: `declare function withoutOwn(text: string): string;\nexport const a = (b: string): string => withoutOwn(b)${between}.slice(0, 9);\n`,
      rule: 'no-restricted-syntax',
    })),
    { file: 'src/planted/date.ts', text: 'export const a = new Date();\n', rule: 'no-restricted-syntax' },
    {
      file: 'src/planted/interval.ts',
      text: 'export const a = setInterval(() => undefined, 1000);\n',
      rule: 'no-restricted-globals',
    },
    { file: 'src/planted/console.ts', text: "console.log('a');\n", rule: 'no-console' },
    {
      file: 'src/planted/backtracking.ts',
      text: 'export const isNumber = (text: string): boolean => /^\\d+\\.?\\d*$/.test(text);\n',
      rule: 'regexp/no-super-linear-backtracking',
    },
    {
      file: 'src/planted/move.ts',
      text: "export const withoutSlash = (path: string): string => path.replace(/\\/+$/, '');\n",
      rule: 'regexp/no-super-linear-move',
    },
    // Tests keep to these, too.
    {
      file: 'test/planted-cost.test.ts',
      text: 'export const a = process.threadCpuUsage();\n',
      rule: 'no-restricted-syntax',
    },
    {
      file: 'test/support/planted-removal.ts',
      text: "import { rmSync } from 'node:fs';\nrmSync('a', { recursive: true });\n",
      rule: 'no-restricted-syntax',
    },
    {
      file: 'test/planted-time.test.ts',
      text: "import { expect } from 'chai';\nexpect(performance.now() - 1).to.be.lessThan(9000);\n",
      rule: 'no-restricted-syntax',
    },
    {
      file: 'test/planted.test.ts',
      text: `${work}export function start(): void {\n  void work();\n}\n`,
      rule: '@typescript-eslint/no-floating-promises',
    },
    {
      file: 'scripts/planted.ts',
      text: 'export const a = setInterval(() => undefined, 1000);\n',
      rule: 'no-restricted-globals',
    },
    {
      file: 'bench/planted.ts',
      text: 'export const a: any = 1;\n',
      rule: '@typescript-eslint/no-explicit-any',
    },
  ];
  /** What the rules above must let pass. */
  const allowed: Files = {
    'src/planted/allowed.ts': `${work}export async function start(at: number): Promise<string> {\n  await work();\n  return new Date(at).toISOString();\n}\n`,
    'test/allowed.ts': "console.log(new Date(), Date.now(), Math.random());\nexport const a = 'b';\n",
  };
  /** A long file is hinted at, and passes. */
  const long: Files = { 'src/planted/long.ts': 'export const a = 1;\n' + '\n'.repeat(300) };
  const unusedDirective: Planted = {
    file: 'src/planted/directive.ts',
    text: '// eslint-disable-next-line no-console\nexport const a = 1;\n',
    // It has no name.
    rule: "Unused eslint-disable directive (no problems were reported from 'no-console').",
  };

  it('passes on an unviolated copy, and hints at a long file', async () => {
    const { status, output } = await runStep('lint', copiedTree(fewSources, { ...allowed, ...long }));
    expect(status, output).to.equal(0);
    expect(output).to.match(/^\n\S+src\/planted\/long\.ts\n.*warning .*max-lines\n\n.* 1 problem /);
  });

  it('trips, also for a directive that disables nothing, and for nothing else', async () => {
    const all = [...plants, unusedDirective];
    const tree = copiedTree(fewSources, { ...allowed, ...filesOf(all) });
    const planted = await runStep('lint', tree, ['--format', 'json']);
    expect(planted.status).to.not.equal(0);
    const results = JSON.parse(planted.stdout) as {
      filePath: string;
      messages: { ruleId: string | null; message: string; severity: number }[];
    }[];
    const found = results.flatMap(({ filePath, messages }) =>
      // Each is an error: one of them alone fails the step.
      messages.map(({ ruleId, message, severity }) =>
        severity === 2 ? `${relative(tree, filePath)}: ${ruleId ?? message}` : `no error: ${message}`,
      ),
    );
    expect(found.sort()).to.deep.equal(lines(all));
  });
});

describe('planted violations: layers', () => {
  const imports = (file: string, of: string, rule: string): Planted => ({
    file,
    text: `import '${of}';\n`,
    rule,
  });
  const plants: readonly Planted[] = [
    imports('src/config/settings/planted.ts', '../queues/merge.ts', 'config-has-no-ring'),
    imports('src/config/harvester/planted.ts', '../settings/settings.ts', 'config-has-no-ring'),
    imports('src/codes/planted.ts', '../worker/reason.ts', 'layer-codes'),
    imports('src/worker/planted.ts', '../util/clock.ts', 'layer-worker'),
    imports('src/util/planted.ts', '../config/settings/settings.ts', 'layer-util'),
    imports('src/clients/planted.ts', '../store/store.ts', 'layer-clients'),
    imports('src/plugins/contracts/planted-store.ts', '../../store/store.ts', 'layer-plugins-contracts'),
    imports('src/plugins/contracts/planted-plugin.ts', '../local/index.ts', 'layer-plugins-contracts'),
    imports('src/limits/planted-config.ts', '../config/queues/limits.ts', 'layer-limits'),
    imports('src/limits/planted-store.ts', '../store/store.ts', 'layer-limits'),
    imports('src/config/planted.ts', '../store/store.ts', 'layer-config'),
    imports('src/store/planted.ts', '../config/settings/settings.ts', 'layer-store'),
    imports('src/agents/planted-daemon.ts', '../daemon/lock.ts', 'layer-agents'),
    imports('src/agents/planted-plugin.ts', '../plugins/local/index.ts', 'layer-agents'),
    imports('src/agents/planted-registry.ts', '../plugins/registry.ts', 'layer-agents'),
    imports('src/daemon/planted.ts', '../cli/output.ts', 'layer-daemon'),
    imports('src/http/planted.ts', '../cli/output.ts', 'layer-http'),
    imports('src/cli/planted.ts', '../plugins/local/index.ts', 'layer-cli'),
    imports('src/plugins/local/planted-store.ts', '../../store/store.ts', 'plugin-is-its-own-folder'),
    imports('src/plugins/local/planted-agents.ts', '../../agents/loop.ts', 'plugin-is-its-own-folder'),
    imports('src/plugins/local/planted-plugin.ts', '../inert/index.ts', 'plugin-is-its-own-folder'),
    imports(
      'src/plugins/local/planted-nested.ts',
      '../credentials/file/index.ts',
      'plugin-is-its-own-folder',
    ),
    imports(
      'src/plugins/credentials/file/planted-store.ts',
      '../../../store/store.ts',
      'plugin-is-its-own-folder',
    ),
    imports(
      'src/plugins/credentials/file/planted-plugin.ts',
      '../kerberos/index.ts',
      'plugin-is-its-own-folder',
    ),
    imports('src/plugins/local/planted-source.ts', '../../sources/fill/index.ts', 'plugin-is-its-own-folder'),
    imports('src/sources/planted-config.ts', '../config/queues/limits.ts', 'layer-sources'),
    imports('src/sources/fill/planted-store.ts', '../../store/store.ts', 'layer-sources'),
    imports('src/sources/fill/planted-plugin.ts', '../../plugins/local/index.ts', 'layer-sources'),
    imports('src/sources/fill/planted-source.ts', '../none/index.ts', 'source-is-its-own-folder'),
    imports('src/config/planted-source.ts', '../sources/fill/index.ts', 'layer-config'),
    imports('src/agents/planted-source.ts', '../sources/none/index.ts', 'layer-agents'),
    imports('src/daemon/planted-source.ts', '../sources/fill/index.ts', 'layer-daemon'),
    imports('src/http/planted-source.ts', '../sources/fill/index.ts', 'layer-http'),
    imports('src/cli/planted-source.ts', '../sources/fill/index.ts', 'layer-cli'),
    imports('src/plugins/registry.ts', '../agents/loop.ts', 'registry-knows-plugins-only'),
    imports('src/planted/loose.ts', '../util/clock.ts', 'every-module-has-a-layer'),
    imports('src/util/planted-undeclared.ts', 'p-limit', 'no-undeclared-dependency'),
    // Types and imports at run time count as much.
    {
      file: 'src/worker/planted-type.ts',
      text: "import type { Clock } from '../util/clock.ts';\nexport type Planted = Clock;\n",
      rule: 'layer-worker',
    },
    {
      file: 'src/util/planted-dynamic.ts',
      text: "export const a = await import('../store/store.ts');\n",
      rule: 'layer-util',
    },
    { file: 'src/util/planted-export.ts', text: "export * from '../store/store.ts';\n", rule: 'layer-util' },
    imports('src/util/planted-cycle-a.ts', './planted-cycle-b.ts', 'no-cycles'),
    imports('src/util/planted-unresolvable.ts', './nowhere.ts', 'no-unresolvable'),
    imports('src/util/planted-no-package.ts', 'no-such-package', 'no-unresolvable'),
    imports('src/util/planted-test.ts', '../../test/planted.ts', 'no-test-code-in-src'),
    imports('src/util/planted-dev.ts', 'chai', 'no-dev-dependency-in-src'),
    {
      file: 'src/util/planted-dev-type.ts',
      text: "import type { expect } from 'chai';\nexport type Planted = typeof expect;\n",
      rule: 'no-dev-dependency-in-src',
    },
  ];
  const alsoNeeded: Files = {
    'src/util/planted-cycle-b.ts': "import './planted-cycle-a.ts';\n",
    'test/planted.ts': 'export const a = 1;\n',
  };
  interface Cruised {
    readonly modules: readonly { source: string; dependencies: readonly unknown[] }[];
    readonly summary: { readonly violations: readonly unknown[] };
  }
  /** The step's own command with another report, which always exits with 0. */
  const cruise = async (tree: string): Promise<Cruised> => {
    const { stdout } = await runStep('layers', tree, ['--output-type', 'json']);
    return JSON.parse(stdout) as Cruised;
  };

  it('trips, and for nothing else', async () => {
    const tree = copiedTree(['src'], { ...alsoNeeded, ...filesOf(plants) });
    const { status, stdout, output } = await runStep('layers', tree);
    expect(status, output).to.not.equal(0);
    const found = [...stdout.matchAll(/^ *error (\S+): (\S+)/gm)];
    expect(found.map(([, rule = '', from = '']) => `${from}: ${rule}`).sort()).to.deep.equal(lines(plants));
  });

  it('has no rule without a planted violation here', () => {
    const { forbidden } = createRequire(import.meta.url)(join(root, '.dependency-cruiser.cjs')) as {
      forbidden: readonly { name: string; severity: string }[];
    };
    expect([...new Set(plants.map(({ rule }) => rule))]).to.have.members(forbidden.map(({ name }) => name));
    expect(forbidden.filter(({ severity }) => severity !== 'error')).to.deep.equal([]);
  });

  it('sees every module of the sources and what it imports, and has nothing against any', async () => {
    const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => `src/${file}`);
    const { modules, summary } = await cruise(root);
    expect(summary.violations).to.deep.equal([]);
    const seen = new Map(modules.map(({ source, dependencies }) => [source, dependencies.length]));
    expect([...seen.keys()]).to.include.members(sources);
    const importing = sources.filter((file) => /^import /m.test(readFileSync(join(root, file), 'utf8')));
    expect(importing.filter((file) => seen.get(file) === 0)).to.deep.equal([]);
  });
});

describe('planted violations: build', () => {
  it('passes on an unviolated copy and leaves the program', async () => {
    const tree = copiedTree(fewSources);
    expect(await runStep('build', tree)).to.include({ status: 0, output: '' });
    for (const suffix of ['js', 'js.map', 'd.ts']) expect(has(tree, `dist/util/clock.${suffix}`)).to.be.true;
  });

  it('trips', async () => {
    const planted = {
      'src/planted/types.ts': "export const a: number = 'b';\n",
      // Fine for the types alone, but it would shift everything in dist/.
      'src/planted/outside.ts': "export * from '../../test/planted.ts';\n",
      'test/planted.ts': 'export const a = 1;\n',
    };
    const { status, output } = await runStep('build', copiedTree(fewSources, planted));
    expect(status, output).to.not.equal(0);
    expect(output).to.match(/^src\/planted\/types\.ts\S+ error TS2322:/m);
    expect(output).to.match(/^src\/planted\/outside\.ts\S+ error TS6059:/m);
  });
});

describe('planted violations: tests', () => {
  const covered: Files = {
    'src/covered.ts': 'export function twice(a: number): number {\n  return 2 * a;\n}\n',
    'test/covered.test.ts': `import { expect } from 'chai';
import { twice } from '../src/covered.ts';

describe('twice', () => {
  it('doubles', () => {
    expect(twice(2)).to.equal(4);
  });
});
`,
  };
  /** The parts of the suite that Mocha's configuration names. */
  const suite = [
    ...[
      'affected.ts',
      'durations.json',
      'durations.ts',
      'flaky.json',
      'gate.ts',
      'ledger.ts',
      'reporter.ts',
      'temporary.ts',
    ],
    ...['stalled.ts', 'tiers.ts', 'verdict.ts'],
  ].map((name) => `test/support/${name}`);
  const tree = (planted: Files = {}): string => copiedTree(suite, { ...covered, ...planted });

  it('passes on an unviolated copy', async () => {
    const { status, output } = await runStep('tests', tree());
    expect(status, output).to.equal(0);
    expect(output).to.match(/Lines +: 100%[^]*\nGREEN {2}1 tests, 0:\d\d[^\n]*\n$/);
  });

  it('trips for a failing test, and for one that nothing waits for', async () => {
    const failing = "it('fails', () => {\n  throw new Error('planted');\n});\n";
    const late =
      "it('ends early', () => {\n  setTimeout(() => {\n    throw new Error('too late');\n  }, 0);\n});\n";
    const more = "it('goes on', (done) => {\n  setTimeout(done, 2000);\n});\n";
    const files = { 'test/failing.test.ts': failing, 'test/late.test.ts': late + more };
    const { status, output } = await runStep('tests', tree(files));
    expect(status, output).to.not.equal(0);
    expect(output).to.include('Error: planted').and.include('Error: too late');
    expect(output).to.match(/\nRED {2}2 of \d tests failed/);
  });

  it('trips for a focused test', async () => {
    const focused = "it.only('is alone', () => undefined);\n";
    const { status, output } = await runStep('tests', tree({ 'test/focused.test.ts': focused }));
    expect(status, output).to.not.equal(0);
    expect(output).to.match(/`\.only` (is not supported|forbidden)/);
  });

  it('trips for each kind of pending test', async () => {
    const pending = [
      "it.skip('is skipped', () => undefined);",
      "it('is empty');",
      "it('skips itself', function () {\n  this.skip();\n});\n",
    ].join('\n');
    const { status, output } = await runStep('tests', tree({ 'test/pending.test.ts': pending }));
    expect(status, output).to.not.equal(0);
    expect(output).to.match(/\nRED {2}3 of \d tests failed/);
    expect(output.match(/Error: Pending test forbidden/g)).to.have.length(3);
  });

  it('trips for a pending group', async () => {
    const pending = "describe.skip('a group', () => {\n  it('is in it', () => undefined);\n});\n";
    const { status, output } = await runStep('tests', tree({ 'test/pending.test.ts': pending }));
    expect(status, output).to.not.equal(0);
    expect(output).to.include('Error: Pending test forbidden');
  });

  const gate = (place: string) =>
    JSON.parse(readFileSync(join(place, 'test-results/gate.json'), 'utf8')) as object;
  /** Tests of files that are no units are repeated once they failed. */
  const integration = 'test/integration/planted.test.ts';

  it('passes for a test that fails once, repeats its file alone, and says so', async () => {
    const once = `import { existsSync, writeFileSync } from 'node:fs';

it('fails once', () => {
  if (existsSync('marker')) return;
  writeFileSync('marker', '');
  throw new Error('by chance');
});
`;
    const place = tree({ [integration]: once });
    const { status, output } = await runStep('tests', place);
    expect(status, output).to.equal(0);
    expect(output).to.match(/\nGREEN {2}2 tests, 1 flaky file.*\nflaky: .*:6 {2}fails once: by chance /);
    expect(gate(place)).to.deep.include({ result: 'green', tests: 2, flaky: [`${integration}: fails once`] });
  });

  const always: Readonly<Record<string, string>> = {
    'a test that fails again': "it('fails', () => {\n  throw new Error('planted');\n});\n",
    'a hook':
      "describe('a group', () => {\n  before(() => {\n    throw new Error('planted');\n  });\n  it('is never reached', () => undefined);\n});\n",
    'the end of a file':
      "import { atEndOfFile } from '../support/temporary.ts';\n\natEndOfFile(async () => {\n  throw new Error('planted');\n});\nit('passes', () => undefined);\n",
    'a process of mocha that dies': "it('dies', () => {\n  process.exit(3);\n});\n",
    'a process of mocha that ends as if all were well':
      "it('dies', () => {\n  process.exit(0);\n});\nit('fails', () => {\n  throw new Error('planted');\n});\n",
    'a file that cannot be loaded': "import './nowhere.ts';\n",
  };
  for (const [what, text] of Object.entries(always))
    it(`trips for ${what}, also where its file is repeated`, async () => {
      const place = tree({ [integration]: text });
      const { status, stdout, output } = await runStep('tests', place);
      expect(status, output).to.equal(1);
      const [, end = ''] = stdout.split(/\n(?=RED {2})/);
      expect(end)
        .to.match(/^RED {2}1 of \d tests failed/)
        .and.match(/^ {3}\.\/scripts\/test test\/integration\/planted\.test\.ts\b/m);
      expect(end.trimEnd().split('\n').length).to.be.at.most(10);
      expect(gate(place)).to.deep.include({ result: 'red', flaky: [] });
    });

  it('runs what needs no real system while these start, and is red where they do not start', async () => {
    for (const [status, result] of [
      ['0', /\nGREEN {2}3 tests/],
      ['1', /no luck[^]*\nRED {2}2 tests[^\n]*\n the test environment did not start, see above\n/],
    ] as const) {
      const starting = temporaryDirectory();
      plant(starting, { log: 'no luck\n' });
      const started = `import { writeFileSync } from 'node:fs';\n\nit('starts', () => {\n  writeFileSync('${starting}/ended', '${status}\\n');\n});\n`;
      const system =
        "import { writeFileSync } from 'node:fs';\n\nit('is a system', () => {\n  writeFileSync('ran', '');\n});\n";
      const place = tree({
        [integration]: started,
        'test/integration/kubernetes-planted.test.ts': system,
      });
      const { output } = await runStep('tests', place, [], { THRESHER_TEST_ENVIRONMENT: starting });
      expect(output).to.match(result);
      expect(existsSync(join(place, 'ran')), output).to.equal(status === '0');
    }
  });

  it('leaves what is for the soak out, and a soak repeats nothing', async () => {
    const once = `import { existsSync, writeFileSync } from 'node:fs';

it('fails once', () => {
  if (existsSync('marker')) return;
  writeFileSync('marker', '');
  throw new Error('by chance');
});
`;
    const place = tree({ 'test/integration/campaign-planted.test.ts': once });
    const gated = await runStep('tests', place);
    expect(gated.output).to.match(/\nGREEN {2}1 tests, /);
    const soaked = await runStep('tests', place, ['soak']);
    expect(soaked.status, soaked.output).to.equal(1);
    expect(soaked.output).to.match(/== seed of the properties: THRESHER_TEST_SEED=\d+\n/);
    expect(soaked.output).to.match(/\nRED {2}1 of 2 tests failed[^]*a soak repeats nothing/);
    const told = JSON.parse(readFileSync(join(place, 'test-results/soak.json'), 'utf8')) as object;
    const failures = ['test/integration/campaign-planted.test.ts: fails once'];
    expect(told).to.deep.include({ result: 'red', tests: 2, failures, flaky: [] });
    expect(told).to.have.property('seed').that.is.a('number');
  });

  it('counts the red ones of many runs', async () => {
    const twice = `import { existsSync, writeFileSync } from 'node:fs';

it('fails in the second run', () => {
  if (existsSync('second')) return;
  writeFileSync(existsSync('first') ? 'second' : 'first', '');
  if (existsSync('second')) throw new Error('by chance');
});
`;
    const place = tree({ [integration]: twice });
    const { status, output } = await runStep('tests', place, ['repeat', '3', integration]);
    expect(status, output).to.equal(1);
    expect(output).to.match(
      /== 1 of 3: green[^]*== 2 of 3: red[^]*== 3 of 3: green[^]*\nRED {2}2 of 3 runs\n$/,
    );
  });

  it('trips where mocha is killed after a failure that would pass alone', async () => {
    const once = `import { existsSync, writeFileSync } from 'node:fs';

it('fails once', () => {
  if (existsSync('marker')) return;
  writeFileSync('marker', '');
  throw new Error('by chance');
});
`;
    const kills = `import { existsSync } from 'node:fs';

it('kills mocha', async () => {
  while (!existsSync('test-results/systems/failures.jsonl')) await new Promise((wake) => setTimeout(wake, 20));
  process.kill(process.ppid, 'SIGKILL');
  throw new Error('planted');
});
`;
    const place = tree({ [integration]: once, 'test/integration/planted-kill.test.ts': kills });
    const { status, stdout, output } = await runStep('tests', place);
    expect(status, output).to.equal(1);
    expect(stdout).to.match(/\nRED [^\n]*\n mocha died before its end/);
    expect(gate(place)).to.deep.include({ result: 'red' });
  });

  it('trips for a property without repeating it', async () => {
    const property = `import fc from 'fast-check';

it('holds', () => {
  fc.assert(fc.property(fc.integer(), (one) => one < 10));
});
`;
    const { status, output } = await runStep('tests', tree({ [integration]: property }));
    expect(status, output).to.equal(1);
    expect(output).to.contain('a property is not repeated').and.not.contain('again, alone');
  });

  it('trips for a file that no test touches', async () => {
    const uncovered = Array.from({ length: 10 }, (_, at) => `export const a${at} = ${at};\n`).join('');
    const { status, output } = await runStep('tests', tree({ 'src/planted/uncovered.ts': uncovered }));
    expect(status, output).to.not.equal(0);
    expect(output)
      .to.include('Coverage for lines')
      .and.match(/\nRED {2}1 tests.*\n coverage is below its bounds/);
  });

  it('trips for branches that no test takes', async () => {
    const choices = Array.from({ length: 8 }, (_, at) => `b ? ${at} : -${at}`).join(', ');
    const branches = `export const a = (b: boolean) => [${choices}];\n`;
    const test =
      "import { a } from '../src/planted/branches.ts';\n\nit('takes one', () => {\n  a(true);\n});\n";
    const { status, output } = await runStep(
      'tests',
      tree({ 'src/planted/branches.ts': branches, 'test/branches.test.ts': test }),
    );
    expect(status, output).to.not.equal(0);
    expect(output)
      .to.include('Coverage for branches')
      .and.match(/\nRED {2}2 tests/);
    expect(output).to.not.include('Coverage for lines');
  });
});
