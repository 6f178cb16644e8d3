import { resolve } from 'node:path';
import { definePlugin } from '../../contracts/definition.ts';
import { FileManager } from './manager.ts';
import { FileConfig } from './schema.ts';

/** Credentials that something else keeps fresh: their lifetime is watched. */
export const FileCredManager = definePlugin({
  kind: 'credmanager',
  name: 'FileCredManager',
  module: 'thresher/credentials',
  config: FileConfig,
  create: ({ files }, context) =>
    new FileManager([...new Set(files.map((file) => resolve(context.configDir, file)))], context),
});
