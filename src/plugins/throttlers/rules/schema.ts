import type { Static } from 'typebox';
import Type from '../../../util/type.ts';

const logicType = Type.Union([Type.Literal('OR'), Type.Literal('AND')], {
  default: 'OR',
  description: '`OR`: any rule throttles the queue. `AND`: only all rules together do.',
});

const MissedRule = Type.Object({
  level: Type.Union([Type.Literal('site'), Type.Literal('pq'), Type.Literal('ce')], {
    description:
      "Workers to count: those of the site, of the queue, or of each of the submitter's `computingElements`, as HTCondor sent them.",
  }),
  timeWindow: Type.Number({
    exclusiveMinimum: 0,
    description: 'Minutes; workers that `sweeper.keepRows` deletes earlier do not count.',
  }),
  maxMissed: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Missed workers in that time at most.',
  }),
});
export type MissedRule = Static<typeof MissedRule>;

const FamilyRule = Type.Union(
  [
    Type.Object({
      level: Type.Literal('cores'),
      maxCores: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    }),
    Type.Object({
      level: Type.Literal('workers'),
      maxWorkers: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    }),
  ],
  { description: '{ level: cores, maxCores } or { level: workers, maxWorkers }.' },
);
export type FamilyRule = Static<typeof FamilyRule>;

const rulesForMissed = Type.Array(MissedRule, {
  default: [],
  description:
    'A rule throttles the queue when more than `maxMissed` workers were missed in `timeWindow` minutes.',
});
const familyRules = (what: string) =>
  Type.Array(FamilyRule, {
    default: [],
    description: `Maxima of ${what} workers of all queues of the same \`siteFamily\` together; a worker counts as \`nCoreFactor\` cores.`,
  });

export const SimpleThrottlerConfig = Type.Object({ logicType, rulesForMissed });
export const TinyThrottlerConfig = Type.Object({
  logicType,
  rulesForMissed,
  rulesForSiteFamilySubmitted: familyRules('queued'),
  rulesForSiteFamilyRunning: familyRules('running'),
  rulesForSiteFamilySubmittedRunning: familyRules('living'),
});
export type TinyThrottlerConfig = Static<typeof TinyThrottlerConfig>;
