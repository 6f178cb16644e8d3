import { type Command, Option } from 'commander';
import { htcJobReader } from '../daemon/htcjobs.ts';
import { type ImportOptions, importHtcJobs, type ImportResult } from '../daemon/htcjob-import.ts';
import { OperatorFiles } from '../util/operator-files.ts';
import { factsFromOutside } from '../util/own-secrets.ts';
import { type Environment, ExitStatus, type GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';
import { type OutputFormat, outputOption, printJson, printTable } from './output.ts';

interface Options extends Omit<ImportOptions, 'file' | 'dryRun'> {
  readonly dryRun?: true;
  readonly output: OutputFormat;
}

/** ms. Each job that lives gets its mark by a command of HTCondor. */
const longest = 3_600_000;

export function addImport(command: Command, environment: Environment): void {
  const importing = command
    .command('import')
    .description('take over the jobs of htc-operator; exit status 1: some HTCJobs were left alone');
  importing
    .argument('<file>', 'its SQLite database, or a copy')
    .option('--dry-run', 'show what would be done, and change nothing')
    .option('--queue <name>', 'the queue that follows the jobs; default: the one queue that takes HTCJobs')
    .option('--namespace <name>', 'where htc-operator was, if several namespaces have HTCJobs of one name')
    .addOption(
      new Option('--unreported <result>', 'how jobs count that ended without a result in the table').choices([
        ...(['succeeded', 'failed'] as const),
      ]),
    )
    .addOption(outputOption())
    .action(async (file: string, { output, ...options }: Options) => {
      const global = importing.optsWithGlobals<GlobalOptions>();
      const { clock, random } = environment;
      await withStore(global, 'write', async ({ store, settings, factoryId }) => {
        const files = new OperatorFiles({ clock });
        const reader = htcJobReader(settings, { clock, random, files });
        try {
          const { stateDir } = global;
          const parts = { settings, stateDir, factoryId, store, reader, clock, files };
          const asked = { ...options, file, dryRun: options.dryRun === true };
          const results = await importHtcJobs(asked, parts, AbortSignal.timeout(longest));
          print(shownOf(results), output, environment);
          if (results.some(({ plan, trouble }) => (trouble ?? plan.why) !== undefined))
            throw new ExitStatus(1);
        } finally {
          await reader.close();
        }
      });
    });
}

/** What is written has the resources as the server has them; what is shown has no secrets that an answer may have echoed. */
function shownOf(results: readonly ImportResult[]): readonly ImportResult[] {
  return results.map(({ plan: { resource, ...plan }, trouble }) => {
    const shown = factsFromOutside(plan) as Omit<ImportResult['plan'], 'resource'>;
    return { plan: { ...shown, name: plan.name, resource }, trouble };
  });
}

function print(results: readonly ImportResult[], output: OutputFormat, { out }: Environment): void {
  if (output === 'json') {
    printJson(
      out,
      results.map(({ plan: { name, jobs, status, why }, trouble }) => ({
        name,
        jobs: jobs.map(({ number, jobId, fate, toMark }) => ({
          number,
          jobId,
          fate,
          marked: toMark !== undefined,
        })),
        ...(status !== undefined && { status }),
        ...(why !== undefined && { why }),
        ...(trouble !== undefined && { trouble }),
      })),
    );
    return;
  }
  const count = (fate: string) => ({
    title: fate.toUpperCase(),
    value: ({ plan }: ImportResult) => plan.jobs.filter((job) => job.fate === fate).length,
  });
  printTable(
    out,
    [
      { title: 'HTCJOB', value: ({ plan }) => plan.name },
      count('living'),
      count('succeeded'),
      count('failed'),
      count('unreported'),
      count('lost'),
      { title: 'RESULT', value: resultOf },
    ],
    results,
  );
}

function resultOf({ plan: { why, status, jobs }, trouble }: ImportResult): string {
  if (trouble !== undefined) return `failed: ${trouble.message}`;
  if (why !== undefined) return `left alone: ${why}`;
  if (status === undefined && jobs.every(({ toMark }) => toMark === undefined)) return 'nothing new';
  return status?.takenOver === true ? 'taken over' : 'marked';
}
