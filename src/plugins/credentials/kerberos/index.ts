import { dirname, resolve } from 'node:path';
import { toolEnvironment } from '../../../clients/credentials/environment.ts';
import { definePlugin } from '../../contracts/definition.ts';
import { KerberosManager } from './manager.ts';
import { KerberosConfig } from './schema.ts';

/** Kerberos tickets by kinit, from a keytab or a password, in files or in a Secret. */
export const KerberosCredManager = definePlugin({
  kind: 'credmanager',
  name: 'KerberosCredManager',
  module: 'thresher/credentials',
  config: KerberosConfig,
  check: (config, { configDir }) => {
    const { principal, keytab, passwordFile, secretDirectory } = config;
    const { ccache, lifetime, renewBelow, minNewLifetime } = config;
    const same = (path: string | undefined) =>
      path !== undefined && resolve(configDir, path) === resolve(configDir, ccache);
    const wrong: (readonly [key: string, message: string] | false)[] = [
      secretDirectory === undefined &&
        principal === undefined && [
          'principal',
          'principal is missing; name the user, as in pilot@EXAMPLE.ORG, or a Secret with the user in secretDirectory',
        ],
      secretDirectory === undefined &&
        keytab === undefined &&
        passwordFile === undefined && [
          'keytab',
          'keytab is missing; name a keytab, a file with the password in passwordFile, or a Secret in secretDirectory',
        ],
      ...(['principal', 'keytab', 'passwordFile'] as const).map(
        (key): readonly [string, string] | false =>
          secretDirectory !== undefined &&
          config[key] !== undefined && [
            key,
            `${key} is given, and secretDirectory too, whose Secret has it; write one of them`,
          ],
      ),
      secretDirectory !== undefined &&
        dirname(resolve(configDir, ccache)) === resolve(configDir, secretDirectory) && [
          'ccache',
          'ccache is in secretDirectory, where nothing can be written; it must be elsewhere',
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
