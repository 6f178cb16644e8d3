import type { AnyDefinition, CheckContext } from '../../plugins/contracts/index.ts';
import type { PluginChoice } from './queue-config.ts';
import type { SectionName } from './queue-schema.ts';

/** The plugin of a section, with its options. */
export interface ChosenPlugin {
  readonly choice: PluginChoice;
  readonly definition: AnyDefinition;
}
export type ChosenPlugins = Partial<Record<SectionName, ChosenPlugin>>;

/** The connections of a section's plugin; undefined if the section has none. */
export function connectionsOf(
  chosen: ChosenPlugin | undefined,
  context: CheckContext,
): readonly string[] | undefined {
  return chosen?.definition.connections(chosen.choice.config, context);
}

/** Sections that do not look at all that the submitter works on: its workers would never be found. */
export function unsharedConnections(
  plugins: ChosenPlugins,
  context: CheckContext,
): { section: SectionName; message: string }[] {
  const placements = connectionsOf(plugins.submitter, context);
  if (placements === undefined) return [];
  return (['monitor', 'sweeper'] as const).flatMap((section) => {
    const seen = connectionsOf(plugins[section], context);
    if (seen === undefined || placements.every((placement) => seen.some(standsFor(placement)))) return [];
    const message = `the submitter works on ${placements.join(', ')}, the ${section} looks at ${seen.join(', ')}`;
    return [{ section, message }];
  });
}

/** A name that ends in `*` stands for all that begin with it. */
function standsFor(placement: string): (seen: string) => boolean {
  return (seen) => seen === placement || (seen.endsWith('*') && placement.startsWith(seen.slice(0, -1)));
}
