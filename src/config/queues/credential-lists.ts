import type { ChoiceProblem, ManagerEntry } from './manager-entry.ts';
import type { JsonObject } from '../../util/json.ts';

/** Stands for an empty item of a list that needs one for each manager. */
const placeholders = ['dummy', 'none', ''];

/** The options that Harvester takes from its lists; `certFile` is the older name of `inCertFile`. */
const options = ['inCertFile', 'outCertFile', 'voms'] as const;

/**
 * The managers of Harvester's parallel lists. As in Harvester's `zip`, the shortest list counts. An entry without a
 * partner there is dropped, and here a warning names it. A list that is not written does not count: not every manager
 * needs each of them.
 * Source: Harvester's credential manager.
 */
export function managersInLists(section: JsonObject): {
  readonly entries: readonly ManagerEntry[];
  readonly problems: readonly ChoiceProblem[];
} {
  const older = itemsOf(section.inCertFile) === undefined && itemsOf(section.certFile) !== undefined;
  const keyOf = (option: string) => (older && option === 'inCertFile' ? 'certFile' : option);
  const lists = ['moduleName', 'className', ...options.map(keyOf)].flatMap((key) => {
    const items = itemsOf(section[key]);
    return items === undefined ? [] : [{ key, items }];
  });
  const list = (key: string) => lists.find((one) => one.key === key)?.items ?? [];
  const modules = list('moduleName');
  const names = list('className');
  // Without module and class the other lists have no use, as in Harvester.
  if (modules.length === 0 && names.length === 0) return { entries: [], problems: [] };
  const counts = lists.map(({ items }) => items.length);
  const count = Math.min(modules.length, names.length, ...counts);
  const entries = Array.from({ length: count }, (_, index): ManagerEntry => {
    const own = options.flatMap((option) => {
      const item = list(keyOf(option))[index];
      return placeholders.includes(item ?? '') ? [] : [[keyOf(option), item] as const];
    });
    return { ...Object.fromEntries(own), module: modules[index] ?? '', name: names[index] ?? '' };
  });
  const dropped = lists.flatMap(({ key, items }) => {
    const rest = items.slice(count);
    return rest.length === 0 ? [] : [`${key} ${rest.join(', ')}`];
  });
  if (dropped.length === 0) return { entries, problems: [] };
  const said = ['moduleName', 'className'].map((key) => ({ key, items: list(key) }));
  const all = [...said, ...lists.filter(({ key }) => key !== 'moduleName' && key !== 'className')];
  const short = all.find(({ items }) => items.length === count)?.key ?? 'className';
  const lengths = all.map(({ key, items }) => `${key} has ${items.length}`).join(', ');
  const message = `the lists are not equally long: ${lengths}; as in Harvester the shortest counts, and these are dropped: ${dropped.join('; ')}; write one line for each manager, "dummy" where it needs nothing`;
  const problem = {
    pointer: `/${short}`,
    code: 'credmanager-dropped',
    severity: 'warning',
    message,
  } as const;
  return { entries, problems: [problem] };
}

/** The items of a list, or of the one value that stands for a list; undefined where nothing is written. */
function itemsOf(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  // On one line Harvester's file has no lists: this is how an empty one looks there.
  if (typeof value === 'string' && /^\[\s*\]$/.test(value)) return [];
  return (Array.isArray(value) ? (value as unknown[]) : [value]).map(String);
}
