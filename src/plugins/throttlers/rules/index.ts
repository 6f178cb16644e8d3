import { type CheckContext, definePlugin } from '../../contracts/definition.ts';
import type { DefinitionProblem } from '../../contracts/definition-problem.ts';
import { RuleThrottler } from './rules.ts';
import { type MissedRule, SimpleThrottlerConfig, TinyThrottlerConfig } from './schema.ts';

/** Holds a queue back while too many workers of its site are missed. */
export const SimpleThrottler = definePlugin({
  kind: 'throttler',
  name: 'SimpleThrottler',
  module: 'thresher/throttlers',
  aliases: [['pandaharvester.harvesterthrottler.simple_throttler', 'SimpleThrottler']],
  config: SimpleThrottlerConfig,
  check: ({ rulesForMissed }, context) =>
    rulesForMissed.length > 0 ? idleRules(rulesForMissed, context) : [noRules],
  create: (config) => new RuleThrottler({ ...noFamily, ...config }),
});

/** The same, and no more workers or cores than a family of sites may have together. */
export const TinyThrottler = definePlugin({
  kind: 'throttler',
  name: 'TinyThrottler',
  module: 'thresher/throttlers',
  aliases: [['pandaharvester.harvesterthrottler.tiny_throttler', 'TinyThrottler']],
  config: TinyThrottlerConfig,
  check: (config, context) =>
    Object.values(config).some((rules) => Array.isArray(rules) && rules.length > 0)
      ? idleRules(config.rulesForMissed, context)
      : [noRules],
  create: (config) => new RuleThrottler(config),
});

const noFamily = {
  rulesForSiteFamilySubmitted: [],
  rulesForSiteFamilyRunning: [],
  rulesForSiteFamilySubmittedRunning: [],
};

const noRules: DefinitionProblem = {
  pointer: '',
  code: 'throttler-without-rules',
  severity: 'warning',
  message: 'the throttler has no rules, so it never throttles; rulesForMissed would be a list of them',
};

/** A rule of level `ce` is one for each computing element that the queue names, and none where it names none. */
function idleRules(
  rules: readonly MissedRule[],
  { computingElements = [] }: CheckContext,
): DefinitionProblem[] {
  if (computingElements.length > 0) return [];
  return rules.flatMap(({ level }, at) =>
    level === 'ce'
      ? [
          {
            pointer: `/rulesForMissed/${at}/level`,
            code: 'throttler-rule-idle' as const,
            severity: 'warning' as const,
            message:
              'a rule of level "ce" looks at each of the submitter\'s computingElements, and there are none: it never throttles',
          },
        ]
      : [],
  );
}
