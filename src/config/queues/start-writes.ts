import type { WriteTarget } from '../../plugins/contracts/index.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { managersRunBy, withElements } from './credential-managers.ts';
import type { CredentialManagerChoice, PluginCatalogue, QueueConfig } from './queue-config.ts';

/** One thing that credential managers write as soon as a daemon starts, and who names them. */
export interface StartWrite {
  readonly target: WriteTarget;
  readonly managers: readonly { readonly name: string; readonly namedBy: string }[];
}

/** All of them, each target once: several queues may keep one Secret. */
export async function startWrites(
  ofSettings: readonly CredentialManagerChoice[],
  queues: readonly QueueConfig[],
  catalogue: PluginCatalogue,
  files: OperatorFiles,
): Promise<StartWrite[]> {
  const named = [
    ...ofSettings.map((choice) => ({ choice, namedBy: 'the settings' })),
    ...queues.flatMap((queue) => managersRunBy(queue).map((choice) => ({ choice, namedBy: queue.name }))),
  ];
  const complete = withElements(queues);
  const single = await Promise.all(
    named.map(async ({ choice, namedBy }) => {
      const { name, module, config, configDir } = complete(choice);
      const definition = catalogue.find('credmanager', module, name);
      const targets = (await definition?.targets(config, { configDir, files })) ?? [];
      return targets.map((target) => ({ target, manager: { name, namedBy } }));
    }),
  );
  const byTarget = Map.groupBy(single.flat(), ({ target }) => JSON.stringify(target));
  return [...byTarget.values()].flatMap((some) => {
    const [first] = some;
    return first === undefined
      ? []
      : [{ target: first.target, managers: some.map(({ manager }) => manager) }];
  });
}

/** "the Secret proxy-secret in namespace pilots of kubernetes:/etc/kubeconfig (K8sSecretCredManager of A, B)". */
export function writeText({ target, managers }: StartWrite): string {
  const what =
    target.kind === 'file'
      ? `the file ${target.path}`
      : `the Secret ${target.name} in namespace ${target.namespace} of ${target.cluster}`;
  const byName = Map.groupBy(managers, ({ name }) => name);
  const who = [...byName].map(([name, some]) => {
    return `${name} of ${[...new Set(some.map(({ namedBy }) => namedBy))].join(', ')}`;
  });
  return `a start would write ${what} (${who.join('; ')})`;
}
