import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  modulesNamedIn,
  modulesOf,
  parseSnapshot,
  type PluginCatalogue,
  type QueueFileResult,
  readQueueFile,
} from '../config/queues.ts';
import type { LoadedSettings } from '../config/settings.ts';
import type { Store } from '../store/store.ts';
import { messageOf } from '../worker/errors.ts';
import type { ConfigInUse } from './assembly.ts';
import { loadPlugins } from './plugins.ts';

/** All that a start or a reload has to know. */
export interface Configuration {
  readonly file: QueueFileResult;
  readonly catalogue: PluginCatalogue;
  readonly inUse: readonly ConfigInUse[];
}

/** Reads the queue file, with every plugin that it or a living worker's configuration names. */
export async function readConfiguration(settings: LoadedSettings, store: Store): Promise<Configuration> {
  const { submitter, qconf } = settings.values;
  const inUse = await configsInUse(store);
  const modules = [
    ...modulesNamedIn(settings.queueFile),
    ...inUse.flatMap(({ config }) => modulesOf(config)),
  ];
  const catalogue = await loadPlugins(modules, dirname(settings.queueFile));
  const file = readQueueFile(settings.queueFile, catalogue, {
    stateDir: settings.stateDir,
    defaultDemand: submitter.defaultDemand,
    queueList: qconf.queueList,
  });
  return { file, catalogue, inUse };
}

/** The configurations of workers that are alive or not swept yet. */
async function configsInUse(store: Store): Promise<ConfigInUse[]> {
  const result: ConfigInUse[] = [];
  for (const { configId } of await store.workers.configsInUse()) {
    const row = await store.queues.snapshot(configId);
    if (row !== undefined) result.push({ configId, config: parseSnapshot(row.snapshot) });
  }
  return result;
}

/**
 * Notices changes of a file by its content, whatever was done to get it there: an editor's rename, a copy in place, or a
 * symbolic link that now leads elsewhere, as Kubernetes does with ConfigMaps. What was read once only may be half written.
 */
export class FileWatch {
  readonly #path: string;
  /** Digest of what is in use, and of what was seen at the last look. */
  #used: string | undefined;
  #seen: string | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** That the file is used as it is now. */
  async use(): Promise<void> {
    this.#used = await this.#digest();
    this.#seen = this.#used;
  }

  /** Whether the file changed, and stayed so from the last look to this one; `changing`: look again soon. */
  async look(): Promise<'same' | 'changing' | 'changed'> {
    const now = await this.#digest();
    const stayed = now === this.#seen;
    this.#seen = now;
    if (now === this.#used) return 'same';
    return stayed ? 'changed' : 'changing';
  }

  async #digest(): Promise<string> {
    try {
      return createHash('sha256')
        .update(await readFile(this.#path))
        .digest('hex');
    } catch (error) {
      // That it cannot be read is a state of its own.
      return messageOf(error);
    }
  }
}
