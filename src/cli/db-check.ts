import type { Command } from 'commander';
import { databaseOf } from '../daemon/database-place.ts';
import { checkDatabase, placeName } from '../store/store.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { loadSettings } from './opened.ts';
import { type OutputFormat, outputOption, printJson } from './output.ts';

export function addDbCheck(db: Command, environment: Environment): void {
  db.command('check')
    .description('look for damage and contradictions in the database, also while the daemon runs')
    .argument('[file]', 'a backup, instead of the database of the daemon')
    .addOption(outputOption())
    .action(async (given: string | undefined, { output }: { output: OutputFormat }, command: Command) => {
      const { out } = environment;
      const place = given ?? databaseOf(loadSettings(command.optsWithGlobals<GlobalOptions>()));
      const file = placeName(place);
      const { findings, counts } = await checkDatabase(place);
      const ok = findings.length === 0;
      if (output === 'json') printJson(out, [{ file, ok, counts, findings }]);
      else if (ok) out.write('ok\n');
      else for (const { check, message } of findings) out.write(`${check}: ${message}\n`);
      if (!ok) throw new ThresherError('store-inconsistent', `${file} is not as it should be`, { file });
    });
}
