import Type, { type Static } from 'typebox';

const logicType = Type.Union([Type.Literal('OR'), Type.Literal('AND')], {
  default: 'OR',
  description: '`OR`: throttled by any rule. `AND`: only when all rules hold.',
});

const MissedRule = Type.Object({
  level: Type.Union([Type.Literal('site'), Type.Literal('pq'), Type.Literal('ce')], {
    description:
      "Whose workers: the site's, the queue's, or of each of the submitter's `computingElements`, where HTCondor sent them.",
  }),
  timeWindow: Type.Number({
    exclusiveMinimum: 0,
    description: 'Minutes; what `sweeper.keepRows` deletes earlier is not counted.',
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
  description: 'Throttled when more than `maxMissed` workers were missed in `timeWindow` minutes.',
});
const familyRules = (what: string) =>
  Type.Array(FamilyRule, {
    default: [],
    description: `What ${what} workers of all queues of the same \`siteFamily\` may be together; cores are counted by \`nCoreFactor\`.`,
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
