import Type from '../util/type.ts';
import { closed, Count, orNull, Reason, Text, Time } from './schemas.ts';

const numbersByType = Type.Record(Type.String(), Type.Number(), { description: 'By resource type.' });

export const PandaAnswer = Type.Object(
  {
    server: Text,
    login: orNull(
      Type.Object(
        {
          kind: Type.String(),
          file: Text,
          subject: Text,
          expires: orNull(Time),
          remaining: orNull(Type.Number({ description: 's; below 0 it has ended.' })),
          problem: Text,
        },
        closed,
      ),
    ),
    daemonRuns: Type.Boolean(),
    link: orNull(
      Type.Object(
        {
          at: Time,
          url: Type.String(),
          harvesterId: Type.String(),
          started: Time,
          starting: Text,
          answered: Type.Record(Type.String(), Time),
          failures: Type.Array(
            Type.Object({ call: Type.String(), since: Time, ...Reason.properties, remedy: Text }, closed),
          ),
          commands: Type.Array(
            Type.Object(
              { at: Time, id: Type.Integer(), command: Type.String(), outcome: Type.String() },
              closed,
            ),
            { description: 'Newest first.' },
          ),
          sites: Type.Array(
            Type.Object(
              {
                site: Type.String(),
                queues: Type.Array(Type.String()),
                statistics: orNull(Time),
                order: orNull(
                  Type.Object(
                    { created: Time, taken: Time, said: numbersByType, wanted: numbersByType, rest: Count },
                    closed,
                  ),
                ),
                jobs: orNull(
                  Type.Object(
                    {
                      activated: Type.Number(),
                      at: Time,
                      instances: orNull(Count),
                    },
                    closed,
                  ),
                ),
              },
              closed,
            ),
          ),
          reports: Type.Object(
            { lastTaken: orNull(Time), taken: Count, refused: Type.Array(Type.Integer()) },
            closed,
          ),
        },
        closed,
      ),
    ),
    outbox: orNull(
      Type.Object({ waiting: Count, oldest: orNull(Time) }, { ...closed, description: 'Not reported yet.' }),
    ),
  },
  { ...closed, description: 'As the one of `thresher panda --output json`.' },
);
