import { brief } from '../../util/beginning.ts';
import type { PluginKind } from '../../plugins/contracts/index.ts';
import { nearest } from '../../util/nearest.ts';
import type { Problem } from '../../util/located.ts';
import {
  type HarvesterKind,
  harvesterPlugin,
  harvesterPlugins,
  kindOf,
  meantPlugin,
} from '../harvester/plugins.ts';
import type { PluginCatalogue } from './queue-config.ts';

/** A plugin that a section asks for and thresher does not define. */
export interface AbsentPlugin {
  readonly section: string;
  /** The place in which Harvester would look for the plugin of this section. */
  readonly harvesterKind: HarvesterKind;
  /** The kind of plugin that thresher looks for; undefined if it has no such kind. */
  readonly kind: PluginKind | undefined;
  readonly module: string;
  readonly name: string;
  /** Whether the queue's pilots fetch their own jobs (`mapType` NoJob). */
  readonly pull: boolean;
}

export interface Finding extends Pick<Problem, 'severity' | 'code' | 'message' | 'subject'> {
  /** Inside the section. */
  readonly pointer: string;
}

/** They move the data of jobs that the factory itself fetched: where pilots fetch their own, there is nothing to move. */
const staging: ReadonlySet<HarvesterKind> = new Set(['preparator', 'stager', 'zipper', 'extractor']);

const ownKinds = ['submitter', 'monitor', 'sweeper', 'messenger'] as const;

/**
 * Says what to make of a plugin without a definition: not needed here, known but not there yet, or unknown, and then
 * what was probably meant. Undefined for one whose task is to do nothing.
 */
export function judgeAbsent(absent: AbsentPlugin, catalogue: PluginCatalogue): Finding | undefined {
  const { section, harvesterKind, module, name, pull } = absent;
  const known = harvesterPlugin(harvesterKind, module, name);
  if (known === undefined) return unknown(absent, catalogue);
  const isDummy = name.startsWith('Dummy');
  if (isDummy && (staging.has(harvesterKind) || harvesterKind === 'credmanager')) return undefined;
  if (staging.has(harvesterKind)) {
    if (pull) {
      const message = `${name} is not needed and ignored: pilots of a pull queue (mapType NoJob) move their data themselves`;
      return { pointer: '', severity: 'notice', code: 'plugin-not-needed', message, subject: name };
    }
  }
  const error = { pointer: '/name', severity: 'error', subject: name } as const;
  if (known.gone) {
    const message = `${name} is a ${section} that Harvester dropped; thresher has none in its place`;
    return { ...error, code: 'plugin-dropped', message };
  }
  const message = `${name} is a ${section} of Harvester that thresher does not have yet`;
  return { ...error, code: 'plugin-not-there', message };
}

function unknown(
  { section, harvesterKind, kind, module, name }: AbsentPlugin,
  catalogue: PluginCatalogue,
): Finding {
  const own = kind === undefined ? [] : catalogue.choices(kind);
  const harvesters = harvesterPlugins.filter((plugin) => plugin.kind === harvesterKind);
  const failure = catalogue.failure(module);
  const modules = [...own, ...harvesters].map((plugin) => plugin.module);
  // A module that could not be imported is a third party's, unless it is one of ours or Harvester's with a slip in it.
  if (failure !== undefined && nearest(module, modules) === undefined) {
    const message = `the module ${brief(module)} could not be used: ${failure.message}`;
    return { pointer: '/module', severity: 'error', code: failure.code, message };
  }
  const error = { pointer: '/name', severity: 'error', code: 'unknown-plugin' } as const;
  const asked = `${brief(name)} of ${brief(module)}`;
  const isHarvesters = module.startsWith('pandaharvester.');
  const other =
    kindOf(module, name) ?? ownKinds.find((one) => catalogue.find(one, module, name) !== undefined);
  if (other !== undefined) return { ...error, message: `${asked} is a ${other}, not a ${section}` };
  const meant = meantPlugin(module, name, own) ?? meantPlugin(module, name, harvesters);
  // The same name in quite another module says nothing: `thresher/slurm` is not Harvester's.
  const likely =
    meant !== undefined && (meant.name !== name || nearest(module, [meant.module]) !== undefined);
  const rest = likely
    ? `did you mean ${meant.name} of ${meant.module}?`
    : `there are ${choices().join(', ') || 'none'}`;
  const message = `no ${section} is called ${asked}; ${rest}`;
  // Harvester may have it in another version, or at a site of its own: nothing is wrong with naming it.
  return isHarvesters ? { ...error, code: 'plugin-not-there', message } : { ...error, message };

  function choices(): string[] {
    if (kind === undefined) return [];
    if (kind !== 'inert') return catalogue.names(kind);
    // One kind here for what are several in Harvester: only those of this section.
    return own
      .filter((plugin) => kindOf(plugin.module, plugin.name) === harvesterKind)
      .map((plugin) => `${plugin.name} of ${plugin.module}`);
  }
}
