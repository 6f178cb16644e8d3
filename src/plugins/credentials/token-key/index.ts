import { dirname, resolve } from 'node:path';
import type { CheckContext } from '../../contracts/definition.ts';
import { definePlugin } from '../../contracts/definition.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import { TokenKeyManager } from './manager.ts';
import { TokenKeyConfig } from './schema.ts';

/** The key by which pilots get a token from the PanDA server. */
export const TokenKeyCredManager = definePlugin({
  kind: 'credmanager',
  name: 'TokenKeyCredManager',
  module: 'thresher/credentials',
  aliases: [['pandaharvester.harvestercredmanager.token_key_cred_manager', 'TokenKeyCredManager']],
  config: TokenKeyConfig,
  needsServer: true,
  check,
  targets: ({ token_key_file }, { configDir }) => [
    { kind: 'file', path: resolve(configDir, token_key_file) },
  ],
  create: (config, context) => new TokenKeyManager(config, context),
});

async function check(
  { token_key_file }: TokenKeyConfig,
  { configDir, files }: Pick<CheckContext, 'configDir' | 'files'>,
): Promise<readonly DefinitionProblem[]> {
  const path = resolve(configDir, token_key_file);
  const wrong = (code: DefinitionProblem['code'], message: string) => [
    { pointer: '/token_key_file', code, message: `token_key_file ${path}: ${message}` },
  ];
  if ((await files.stat(path))?.isDirectory())
    return wrong('wrong-type', 'this is a directory; name a file in it');
  const directory = dirname(path);
  if ((await files.stat(directory))?.isDirectory()) return [];
  return wrong(
    'file-unreadable',
    `${directory} is no directory: make one that the user of the daemon can write to`,
  );
}
