import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, matchesGlob, normalize, resolve } from 'node:path';
import ts from 'typescript';
import { filesInOrder, isLeftToSoak, tierOf } from './tiers.ts';

const checkout = resolve(import.meta.dirname, '../..');

/**
 * Modules that start or assemble the whole program. Nearly every test imports one of them, and so would be affected by nearly every change; what such
 * tests are about stands in `areas`.
 */
const hubs: readonly string[] = [
  'src/cli/program.ts',
  'src/daemon/daemon.ts',
  'src/plugins/registry.ts',
  'test/support/command-line.ts',
  'test/support/factory.ts',
  'test/support/local-plugins.ts',
  'test/support/site.ts',
];

/** Tests that start the program, by what they are about: no import shows that. */
export const areas: readonly (readonly [change: string, tests: string])[] = [
  ['{src/{plugins,clients}/kubernetes,templates/kubernetes}/**', 'test/integration/*kubernetes*'],
  ['{src/{plugins,clients}/htcondor,templates/htcondor}/**', 'test/integration/*htcondor*'],
  ['{src/plugins/{local,inert},templates/local}/**', 'test/integration/{local-*,*-local,promise*}.test.ts'],
  ['src/plugins/registry.ts', 'test/integration/*-contract.test.ts'],
  ['src/plugins/contracts/**', 'test/integration/{*-contract,*sources}.test.ts'],
  ['src/plugins/{throttlers,messengers}/**', 'test/integration/{limits,cron,promise*}.test.ts'],
  ['src/{plugins,clients,daemon}/credentials/**', 'test/integration/*{credential,kerberos,proxy}*.test.ts'],
  ['src/sources/panda/**', 'test/integration/panda-*.test.ts'],
  ['src/clients/{panda,web}/**', 'test/integration/panda-*.test.ts'],
  ['{src/{sources,clients}/htcjob,templates/htcjob}/**', 'test/integration/*htcjob*.test.ts'],
  ['{src/{sources,clients,daemon}/interlink,templates/interlink}/**', 'test/integration/*interlink*.test.ts'],
  ['src/{sources/htcondor-idle,daemon/pool}/**', 'test/integration/*{idle,pool-}*.test.ts'],
  ['src/sources/{none,fill,request}/**', 'test/integration/*source*.test.ts'],
  ['src/sources/*.ts', 'test/integration/*source*.test.ts'],
  ['src/clients/program.ts', 'test/integration/{htcondor-client,kubernetes-credentials}.test.ts'],
  ['src/store/**', 'test/integration/{postgresql-*,restore,*crash-points,shared-factory}.test.ts'],
  ['src/agents/**', 'test/integration/{promise*,*crash-points,campaign-local,*-contract}.test.ts'],
  ['src/limits/**', 'test/integration/{limits,promise*}.test.ts'],
  ['src/worker/**', 'test/integration/{promise*,*-contract}.test.ts'],
  ['src/{config,codes}/**', 'test/integration/{reload,harvester-*,no-files,quickstart}.test.ts'],
  ['src/daemon/**', 'test/{daemon/daemon,integration/{http,reload,restore,service,shared-factory}}.test.ts'],
  ['src/http/**', 'test/integration/{http,htcondor-operator-requests,prometheus}.test.ts'],
  ['src/cli/**', 'test/{cli/{program,smoke},integration/{quickstart,package,operator-requests}}.test.ts'],
  ['src/util/**', 'test/integration/{hanging-files,quickstart}.test.ts'],
  ['{bin,etc,examples,templates}/**', 'test/integration/{quickstart,package}.test.ts'],
  ['{scripts,.ci}/**', 'test/checks/*.test.ts'],
  ['{*.json,*.js,.*rc*,.*.cjs}', 'test/checks/*.test.ts'],
  ['test/env/**', 'test/integration/*-env.test.ts'],
  ['test/campaign/**', 'test/integration/campaign-*.test.ts'],
];

/** By file: those that import it, types included. */
export type Importers = ReadonlyMap<string, ReadonlySet<string>>;

/** Reads the imports of all modules of src/ and test/. */
export function importersIn(root = checkout): Importers {
  const importers = new Map<string, Set<string>>();
  for (const folder of ['src', 'test'])
    for (const path of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
      if (!path.endsWith('.ts')) continue;
      const file = join(folder, path);
      for (const { fileName } of ts.preProcessFile(readFileSync(join(root, file), 'utf8')).importedFiles) {
        if (!fileName.startsWith('.')) continue;
        const target = normalize(join(dirname(file), fileName));
        const known = importers.get(target) ?? new Set();
        importers.set(target, known.add(file));
      }
    }
  return importers;
}

export interface Affected {
  /** Test files that changed, or that import what changed, directly or through others. */
  readonly byImport: ReadonlySet<string>;
  /** Of the others, those that are about it. */
  readonly byArea: ReadonlySet<string>;
}

/** Which of these test files a change of these files can break. */
export function affectedBy(
  changes: readonly string[],
  tests: readonly string[],
  importers: Importers = importersIn(),
): Affected {
  const reached = new Set(changes);
  for (const file of reached) {
    if (hubs.includes(file) && !changes.includes(file)) continue;
    for (const importer of importers.get(file) ?? []) reached.add(importer);
  }
  const byImport = new Set(tests.filter((test) => reached.has(test)));
  const about = areas
    .filter(([change]) => changes.some((file) => matchesGlob(file, change)))
    .map(([, pattern]) => pattern);
  const byArea = new Set(
    tests.filter((test) => !byImport.has(test) && about.some((pattern) => matchesGlob(test, pattern))),
  );
  return { byImport, byArea };
}

/** How long the files may take that a landing runs only because a change can break them, s. */
const mostAffected = 180;
/** Of a file that was never measured, s. */
const assumed = 60;

/** Of the files that are left to the soak. */
export interface Chosen {
  /** Those that a landing runs all the same. */
  readonly run: readonly string[];
  /** Those that it only names, because there is no time for them. */
  readonly named: readonly string[];
}

/**
 * What a landing runs of the files that are left to the soak: each one that changed itself, as nothing else would show whether it is green, and of those
 * that the change can break as many as three minutes hold.
 * @param durations of files, s
 */
export function chosenOf(
  changes: readonly string[],
  leftToSoak: readonly string[],
  durations: ReadonlyMap<string, number>,
  importers: Importers = importersIn(),
): Chosen {
  const { byImport, byArea } = affectedBy(changes, leftToSoak, importers);
  const seconds = (file: string) => durations.get(file) ?? assumed;
  const shortestFirst = (some: Iterable<string>) => [...some].sort((a, b) => seconds(a) - seconds(b));
  const run = leftToSoak.filter((file) => changes.includes(file));
  const others = [...shortestFirst(byImport), ...shortestFirst(byArea)].filter((file) => !run.includes(file));
  const named: string[] = [];
  let room = mostAffected;
  for (const file of others)
    if (seconds(file) <= room) {
      run.push(file);
      room -= seconds(file);
    } else named.push(file);
  return { run, named };
}

/** Empty where the sources came without their history. Root may run the tests in the checkout of another user. */
export function git(...args: readonly string[]): string {
  const own = ['-c', `safe.directory=${checkout}`, '--no-optional-locks', ...args];
  try {
    return execFileSync('git', own, {
      cwd: checkout,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return '';
  }
}

/** Files that differ from a commit, uncommitted ones included; those that are gone too. */
export function changesSince(commit: string): string[] {
  const changed = git('diff', '--name-only', '--no-renames', commit);
  const added = git('ls-files', '--others', '--exclude-standard');
  return `${changed}\n${added}`.split('\n').filter((file) => file !== '');
}

/** The last commit that is four hours older than this one: what a landing brings was made since then, or a soak saw it. Empty where the clone does not have it. */
export function beforeThisLanding(): string {
  const lookBack = 4 * 3600;
  return git('rev-list', '-1', `--before=${Number(git('log', '-1', '--format=%ct')) - lookBack}`, 'HEAD');
}

if (process.argv[1] === import.meta.filename) {
  // `affected.ts REF`: for scripts/test, a test file a line, after its tier.
  const [, , ref = ''] = process.argv;
  const { byImport, byArea } = affectedBy(changesSince(ref), filesInOrder(undefined));
  for (const file of [...byImport, ...[...byArea].filter((one) => !isLeftToSoak(one))])
    console.log(`${tierOf(file)} ${file}`);
}
