import type {
  FamilyPart,
  Throttle,
  ThrottledQueue,
  ThrottleFacts,
  Throttler,
} from '../../contracts/throttler.ts';
import type { FamilyRule, MissedRule, TinyThrottlerConfig } from './schema.ts';

const minute = 60_000;

/** The room that one rule leaves, in workers, and in words. */
export interface Verdict {
  readonly atMost: number;
  readonly why: string;
}

/**
 * Rules of SimpleThrottler and TinyThrottler. A rule on missed workers stops everything once more than `maxMissed` were
 * missed; one on a family leaves the room up to its maximum, so that new workers never exceed it, where Harvester looks only
 * whether it already was exceeded. Source: Harvester's tiny_throttler.
 */
export class RuleThrottler implements Throttler {
  readonly countsFamily: boolean;
  readonly #config: TinyThrottlerConfig;

  constructor(config: TinyThrottlerConfig) {
    this.#config = config;
    this.countsFamily = this.#familyRules().length > 0;
  }

  async judge(queue: ThrottledQueue, facts: ThrottleFacts): Promise<Throttle | undefined> {
    const verdicts: Verdict[] = [];
    for (const rule of this.#config.rulesForMissed) verdicts.push(...(await judgeMissed(rule, queue, facts)));
    for (const [part, rule] of this.#familyRules()) {
      verdicts.push(judgeFamily(rule, queue, part, await facts.family(part)));
    }
    return combine(this.#config.logicType, verdicts);
  }

  #familyRules(): (readonly [FamilyPart, FamilyRule])[] {
    const { rulesForSiteFamilySubmitted, rulesForSiteFamilyRunning, rulesForSiteFamilySubmittedRunning } =
      this.#config;
    return [
      ...rulesForSiteFamilySubmitted.map((rule) => ['queued', rule] as const),
      ...rulesForSiteFamilyRunning.map((rule) => ['running', rule] as const),
      ...rulesForSiteFamilySubmittedRunning.map((rule) => ['alive', rule] as const),
    ];
  }
}

/** A rule of level `ce` is one for each computing element; without any it is none. */
async function judgeMissed(
  { level, timeWindow, maxMissed }: MissedRule,
  queue: ThrottledQueue,
  facts: ThrottleFacts,
): Promise<Verdict[]> {
  const values = { site: [queue.computingSite], pq: [queue.name], ce: queue.computingElements }[level];
  const verdicts: Verdict[] = [];
  for (const value of values) {
    const missed = await facts.missed(level, value, timeWindow * minute);
    const why = `${missed} workers of ${level} ${value} were missed in ${timeWindow} min (rulesForMissed: maxMissed ${maxMissed})`;
    verdicts.push({ atMost: missed > maxMissed ? 0 : Infinity, why });
  }
  return verdicts;
}

const optionOf: Readonly<Record<FamilyPart, string>> = {
  queued: 'rulesForSiteFamilySubmitted',
  running: 'rulesForSiteFamilyRunning',
  alive: 'rulesForSiteFamilySubmittedRunning',
};

/** New workers are queued first: those of a rule on the running count as soon as they run. */
function judgeFamily(
  rule: FamilyRule,
  { siteFamily, coresPerWorker }: ThrottledQueue,
  part: FamilyPart,
  sum: { readonly workers: number; readonly cores: number },
): Verdict {
  const [used, most, each, name] =
    rule.level === 'cores'
      ? ([sum.cores, rule.maxCores, coresPerWorker, 'maxCores'] as const)
      : ([sum.workers, rule.maxWorkers, 1, 'maxWorkers'] as const);
  // The option is named: a queue has a maxWorkers of its own.
  const option = `${optionOf[part]}: ${name} ${most}`;
  const why = `${used} ${rule.level} of siteFamily ${siteFamily} are ${part} (${option})`;
  return { atMost: Math.max(0, Math.floor((most - used) / each)), why };
}

/** `OR`: the strictest rule counts. `AND`: all must hold, so the mildest does. Without rules nothing is throttled. */
export function combine(logic: 'OR' | 'AND', verdicts: readonly Verdict[]): Throttle | undefined {
  if (verdicts.length === 0) return undefined;
  const atMost = (logic === 'OR' ? Math.min : Math.max)(...verdicts.map((verdict) => verdict.atMost));
  if (atMost === Infinity) return undefined;
  const said = verdicts.filter((verdict) => (logic === 'OR' ? verdict.atMost === atMost : true));
  return { atMost, reason: { code: 'throttled', message: said.map(({ why }) => why).join(', and ') } };
}
