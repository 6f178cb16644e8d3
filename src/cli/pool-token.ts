import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { authorizations, keepToken, keyIn, makeToken, trustDomainIn } from '../daemon/pool/token.ts';
import { parseDuration } from '../util/duration.ts';
import { ThresherError } from '../worker/errors.ts';
import type { Environment } from './environment.ts';
import { printExact } from './output.ts';

interface TokenFlags {
  readonly directory: string;
  readonly key?: string;
  readonly keyName?: string;
  readonly trustDomain?: string;
  readonly authorization?: readonly string[];
  readonly lifetime: number;
  readonly out?: string;
  readonly print?: true;
  readonly force?: true;
}

export function addToken(command: Command, { clock, out }: Environment): void {
  command
    .command('token')
    .description('make a token of a pool for a user or a daemon')
    .argument('<identity>', 'USER, or USER@DOMAIN: worker, schedd, or a person')
    .option('--directory <dir>', 'where `thresher pool init` put the signing key', 'htcondor-pool')
    .option('--key <file>', 'another signing key, such as that of a pool that runs')
    .option('--key-name <name>', 'name of that key in the directory of keys of the collector (default: POOL)')
    .option('--trust-domain <name>', "TRUST_DOMAIN of the pool (default: that of the directory's tokens)")
    .option(
      '--authorization <name,...>',
      `limits what the token is good for: ${authorizations.join(', ')} (default: that of a worker or schedd; others get no limit)`,
      authorizationsArgument,
    )
    .option('--lifetime <duration>', 'how long it is good, such as 12h or 30d', lifetimeArgument, 86_400)
    .option('--out <file>', 'where to put it; the file is new, and closed to others')
    .option('--force', 'replace that file')
    .option('--print', 'print it instead: it is a secret')
    .action((identity: string, flags: TokenFlags) => {
      const { key, keyName, authorization, lifetime, out: file, print, force } = flags;
      if ((file === undefined) === (print === undefined))
        throw new ThresherError(
          'usage',
          'a token is a secret: say where it goes, by --out FILE or by --print',
        );
      const directory = resolve(flags.directory);
      const { token, summary } = makeToken({
        identity,
        key: key === undefined ? keyIn(directory) : resolve(key),
        ...(keyName !== undefined && { keyName }),
        trustDomain: flags.trustDomain ?? trustDomainIn(directory),
        ...(authorization !== undefined && { authorizations: authorization }),
        lifetime,
        now: clock.now(),
      });
      if (file === undefined) {
        printExact(out, `${token}\n`);
        return;
      }
      keepToken(resolve(file), token, force === true);
      out.write(`${resolve(file)}: ${summary}\n`);
    });
}

/** @throws InvalidArgumentError, which becomes a message of the command line */
function lifetimeArgument(text: string): number {
  const seconds = Math.floor((parseDuration(text) ?? 0) / 1000);
  if (seconds >= 1 && seconds <= 100 * 365 * 86_400) return seconds;
  throw new InvalidArgumentError('It must be a duration of a second or more, such as 90s, 12h or 30d.');
}

/** @throws InvalidArgumentError, which becomes a message of the command line */
function authorizationsArgument(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim().toUpperCase());
  const wrong = names.filter((name) => !(authorizations as readonly string[]).includes(name));
  if (wrong.length === 0) return names;
  throw new InvalidArgumentError(`${wrong.join(', ')} is none of ${authorizations.join(', ')}.`);
}
