import { resolve } from 'node:path';
import { toolEnvironment } from '../../../clients/credentials/environment.ts';
import { definePlugin } from '../../contracts/definition.ts';
import { KerberosManager } from './manager.ts';
import { KerberosConfig } from './schema.ts';

/** Kerberos tickets by kinit, from a keytab or a password. */
export const KerberosCredManager = definePlugin({
  kind: 'credmanager',
  name: 'KerberosCredManager',
  module: 'thresher/credentials',
  config: KerberosConfig,
  check: ({ keytab, passwordFile, ccache, lifetime, renewBelow, minNewLifetime }, { configDir }) => {
    const same = (path: string | undefined) =>
      path !== undefined && resolve(configDir, path) === resolve(configDir, ccache);
    const wrong: (readonly [key: string, message: string] | false)[] = [
      keytab === undefined &&
        passwordFile === undefined && [
          'keytab',
          'keytab is missing; name a keytab, or a file with the password in passwordFile',
        ],
      keytab !== undefined &&
        passwordFile !== undefined && [
          'passwordFile',
          'passwordFile is given, and keytab too; only one of them can be used',
        ],
      (same(keytab) || same(passwordFile)) && [
        'ccache',
        'ccache is the file to log in with, which would be overwritten; it must be another',
      ],
      renewBelow >= lifetime && [
        'renewBelow',
        `renewBelow is ${renewBelow}; it must be less than lifetime, ${lifetime}`,
      ],
      minNewLifetime > lifetime && [
        'minNewLifetime',
        `minNewLifetime is ${minNewLifetime}; no new ticket has more than lifetime, ${lifetime}`,
      ],
    ];
    return wrong
      .filter((one) => one !== false)
      .map(([key, message]) => ({ pointer: `/${key}`, code: 'wrong-type', message }));
  },
  targets: ({ ccache }, { configDir }) => [{ kind: 'file', path: resolve(configDir, ccache) }],
  create: (config, context) => new KerberosManager(config, context, toolEnvironment(process.env)),
});
