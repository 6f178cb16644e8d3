import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { PandaApi } from '../../clients/panda/api.ts';
import { PandaClient } from '../../clients/panda/client.ts';
import { PandaLogin } from '../../clients/panda/login.ts';
import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import { PandaLink } from './link.ts';
import { LinkMemory } from './memory.ts';
import { loginOf, PandaOptions } from './options.ts';

/** Workers on the demand of a PanDA server. */
export const PandaSource = defineSource({
  name: 'panda',
  module: builtInSources,
  config: PandaOptions,
  check: (options, { configDir }) => {
    try {
      loginOf(options, configDir);
      return [];
    } catch (error) {
      return [
        {
          pointer: '',
          severity: 'error',
          code: 'wrong-type',
          message: error instanceof Error ? error.message : String(error),
        },
      ];
    }
  },
  create: (options, { clock, files, log, stateDir, harvesterId, configDir }) => {
    const ca = options.ca_cert === undefined ? undefined : resolve(configDir, options.ca_cert);
    const login = new PandaLogin(loginOf(options, configDir), ca, { files, clock });
    const url = options.server_api_url_ssl.replace(/\/+$/, '');
    const client = new PandaClient({ url, login, clock, timeout: options.timeout * 1000 });
    const directory = join(stateDir, 'panda');
    return new PandaLink({
      api: new PandaApi(client, harvesterId),
      memory: new LinkMemory(directory),
      directory,
      options,
      clock,
      log,
      version: '',
      host: hostname(),
    });
  },
});
