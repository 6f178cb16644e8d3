import { basename, dirname, isAbsolute, resolve } from 'node:path';
import type { Static } from 'typebox';
import type { Lane } from '../../../util/file-lane.ts';
import { ensureDirectory } from '../../../util/files.ts';
import { fillPlaceholders, unknownPlaceholders } from '../../../util/placeholders.ts';
import { whatIsMeant } from '../../../util/nearest.ts';
import { removeTree } from '../../../util/remove-tree.ts';
import Type from '../../../util/type.ts';
import { messageOf } from '../../../worker/errors.ts';
import type { Context } from '../../contracts/context.ts';
import { definePlugin } from '../../contracts/definition.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import {
  accessPointPlaceholders,
  type AccessPointValues,
  type Messenger,
} from '../../contracts/messenger.ts';

const SharedFileConfig = Type.Object({
  accessPoint: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        "Directory of each worker, with Harvester's placeholders: any worker attribute, `${harvesterID}`, `${_workerID_3.2}`. thresher makes it before it submits the worker, and removes it with the sweep. A worker found without a row keeps the directory in its mark only where this option gives the same one; every other stays as it is (`access-point-foreign`). In the resource type, job type, pilot type and label of a worker `/` becomes `_`.",
    }),
  ),
});

const known: ReadonlySet<string> = new Set(accessPointPlaceholders);

/** Whether each worker has a directory of its own, which goes with the worker. */
function isOneWorkers(template: string): boolean {
  return /\$\{workerID\}/.test(basename(template));
}

/** Makes and removes the workers' access points. In pull mode nothing passes through them. */
export const SharedFileMessenger = definePlugin({
  kind: 'messenger',
  name: 'SharedFileMessenger',
  module: 'thresher/shared-file',
  aliases: [['pandaharvester.harvestermessenger.shared_file_messenger', 'SharedFileMessenger']],
  config: SharedFileConfig,
  check: ({ accessPoint }) => {
    if (accessPoint === undefined) return [];
    const place = { pointer: '/accessPoint', severity: 'warning' } as const;
    const problems: DefinitionProblem[] = unknownPlaceholders(accessPoint, known).map((name) => {
      const message = `"\${${name}}" in accessPoint is not a placeholder and stays as it is written; ${whatIsMeant(name, [...known])}`;
      return { ...place, code: 'unknown-placeholder', message };
    });
    if (isOneWorkers(accessPoint)) return problems;
    const message = `the last component of ${accessPoint} has no \${workerID}: workers share it and it is never removed`;
    return [...problems, { ...place, code: 'access-point-shared', message }];
  },
  create: (config, context) => new SharedFiles(config, context),
});

class SharedFiles implements Messenger {
  readonly #accessPoint: string | undefined;
  readonly #base: string;
  readonly #files: Pick<Context['files'], 'laneOf'>;
  /** Removals under way, by path: a large one takes longer than a sweep waits for it. */
  readonly #removals = new Map<string, Promise<void>>();

  constructor(
    config: Static<typeof SharedFileConfig>,
    { configDir, files }: Pick<Context, 'configDir' | 'files'>,
  ) {
    this.#accessPoint = config.accessPoint;
    this.#base = configDir;
    this.#files = files;
  }

  accessPointOf(values: AccessPointValues): string | undefined {
    if (this.#accessPoint === undefined) return undefined;
    const filled = fillPlaceholders(this.#accessPoint, values);
    return isAbsolute(filled) ? filled : resolve(this.#base, filled);
  }

  async setUp(accessPoints: readonly string[]) {
    const failed = new Map<string, { code: string; message: string }>();
    for (const path of accessPoints) {
      try {
        await this.#laneOf(path).run(`making ${path}`, () => ensureDirectory(path));
      } catch (error) {
        failed.set(path, { code: 'access-point-failed', message: messageOf(error) });
      }
    }
    return failed;
  }

  async remove(accessPoint: string, workerId: number): Promise<void> {
    // The digits of an id may stand in the name of a directory that all share ("pilots-2024").
    if (this.#accessPoint !== undefined && !isOneWorkers(this.#accessPoint)) return;
    // A directory that others may share, or a mistake such as "/data", is not ours to remove.
    if (!basename(accessPoint).includes(String(workerId))) return;
    const earlier = this.#removals.get(accessPoint);
    const removal =
      earlier ??
      removeTree(accessPoint, this.#laneOf(accessPoint)).finally(() => {
        this.#removals.delete(accessPoint);
      });
    this.#removals.set(accessPoint, removal);
    await removal;
  }

  /** Of its own file system: parts of a template may be mounts, and a worker keeps the access point of an earlier template. */
  #laneOf(accessPoint: string): Lane {
    const isShared = this.#accessPoint !== undefined && !isOneWorkers(this.#accessPoint);
    return this.#files.laneOf(isShared ? accessPoint : dirname(accessPoint));
  }
}
