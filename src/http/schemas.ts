import type { TSchema } from 'typebox';
import { serviceStates } from '../daemon/services/service.ts';
import { requestStates } from '../daemon/requests/request-view.ts';
import Type from '../util/type.ts';
import { mostWorkers } from '../worker/operator-request.ts';
import { workerStatuses } from '../worker/status.ts';

/** Descriptions of parameters complete the sentence "limit must be ...": they are part of error messages. */
const statusList = workerStatuses.join('|');

export const WorkerParams = Type.Object({
  id: Type.String({ pattern: '^[1-9]\\d{0,14}$', description: 'a worker id, which is a whole number' }),
});

export const WorkersQuery = Type.Object(
  {
    queue: Type.Optional(
      Type.String({ minLength: 1, maxLength: 500, description: 'the name of a queue, given once' }),
    ),
    status: Type.Optional(
      Type.String({
        pattern: `^(${statusList})(,(${statusList}))*$`,
        description: `one or more of ${workerStatuses.join(',')}`,
      }),
    ),
    limit: Type.Integer({
      minimum: 1,
      maximum: 1000,
      default: 100,
      description: 'a whole number from 1 to 1000',
    }),
  },
  { additionalProperties: false },
);

export const LogQuery = Type.Object(
  {
    stream: Type.Union([Type.Literal('stdout'), Type.Literal('stderr')], {
      default: 'stdout',
      description: 'stdout or stderr',
    }),
    tail: Type.Integer({
      minimum: 1,
      maximum: 10_000,
      default: 200,
      description: 'a whole number of lines from 1 to 10000',
    }),
  },
  { additionalProperties: false },
);

export const PageQuery = Type.Object(
  {
    queue: Type.Optional(
      Type.String({ minLength: 1, maxLength: 500, description: 'the name of a queue, given once' }),
    ),
  },
  { additionalProperties: false },
);

export const NoQuery = Type.Object({}, { additionalProperties: false });

export const closed = { additionalProperties: false } as const;
export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const Text = orNull(Type.String());
export const Count = Type.Integer({ minimum: 0 });
export const Time = Type.String({ description: 'ISO 8601 in UTC.' });
export const Reason = Type.Object(
  { code: Type.String({ description: 'See docs/errors.md.' }), message: Type.String() },
  closed,
);
const Status = Type.Union(workerStatuses.map((status) => Type.Literal(status)));

export const Failure = Type.Object(Reason.properties, { ...closed, description: 'The error.' });

export const HealthAnswer = Type.Object(
  {
    status: Type.Union([Type.Literal('ok'), Type.Literal('stuck')]),
    stuck: Type.Array(
      Type.Object({ loop: Type.String(), seconds: Type.Number({ description: 'Without progress, s.' }) }),
    ),
    services: Type.Array(
      Type.Object({
        name: Type.String(),
        state: Type.Union(serviceStates.map((state) => Type.Literal(state))),
      }),
      { description: 'A service that fails is no reason to start the daemon again.' },
    ),
  },
  { ...closed, description: 'Whether all loops make progress.' },
);

export const ReadyAnswer = Type.Object(
  {
    status: Type.Union([
      Type.Literal('ready'),
      Type.Literal('standby'),
      Type.Literal('starting'),
      Type.Literal('stopping'),
    ]),
    leader: Type.Optional(
      Type.String({ description: 'Host and process of the daemon that has the factory, at a standby.' }),
    ),
    waiting: Type.Array(Type.String(), {
      description: 'Connections of which the first listing is under way.',
    }),
  },
  {
    ...closed,
    description: 'Whether thresher has asked every connection for its workers, once since the start.',
  },
);

const QueueAnswer = Type.Object(
  {
    name: Type.String(),
    queueStatus: Type.String(),
    state: Type.String(),
    counts: Type.Object(
      Object.fromEntries(workerStatuses.map((status) => [status, Type.Optional(Count)])),
      closed,
    ),
    limits: Type.Record(Type.String(), orNull(Type.Number())),
    reasons: Type.Array(Reason, { description: 'Why no more are submitted; the weightiest first.' }),
  },
  { ...closed, description: 'As `thresher queues --output json`.' },
);
export const QueuesAnswer = Type.Array(QueueAnswer);

const worker = {
  workerID: Type.Integer(),
  batchID: Text,
  queueName: Type.String(),
  computingSite: Type.String(),
  status: Status,
  nativeStatus: Text,
  nativeExitCode: orNull(Type.Integer()),
  errorCode: Text,
  diagMessage: Text,
  submitTime: orNull(Time),
  startTime: orNull(Time),
  endTime: orNull(Time),
  nodeID: Text,
  computingElement: orNull(Type.String({ description: 'Endpoint that it was sent to, on HTCondor.' })),
  nCore: Type.Integer(),
  resourceType: Type.String(),
};
export const WorkersAnswer = Type.Array(
  Type.Object(worker, { ...closed, description: 'As `thresher workers --output json`.' }),
);

export const WorkerAnswer = Type.Object(
  {
    ...worker,
    name: Type.String(),
    origin: Type.Object({ kind: Type.String(), uid: Type.String(), index: Type.Integer() }, closed),
    placement: Type.String(),
    configID: Type.Integer(),
    attempt: Type.Integer(),
    accessPoint: Text,
    handle: orNull(
      Type.Object({ batchID: Type.String() }, { description: "The backend's name for the worker." }),
    ),
    minRamCount: Type.Integer({ description: 'MB; 0: not said.' }),
    maxDiskCount: Type.Integer({ description: 'MB; 0: not said.' }),
    maxWalltime: Type.Integer({ description: 's; 0: no limit.' }),
    jobType: Type.String(),
    pilotType: Type.String(),
    prodSourceLabel: Type.String(),
    detail: Type.Unknown({ description: "The backend's own facts." }),
    creationTime: orNull(Time),
    modificationTime: orNull(Time),
    killTime: orNull(Time),
    killReason: Text,
    sweptTime: orNull(Time),
    history: Type.Array(
      Type.Object(
        {
          time: Time,
          from: orNull(Status),
          to: Status,
          source: Type.String(),
          nativeStatus: Text,
          message: Text,
        },
        closed,
      ),
    ),
  },
  { ...closed, description: 'As one of `thresher worker ID --output json`.' },
);

export const RequestParams = Type.Object({
  request: Type.String({ pattern: '^[0-9a-z]{1,64}$', description: 'the id of a request' }),
});

export const RequestsQuery = Type.Object(
  {
    queue: Type.Optional(
      Type.String({ minLength: 1, maxLength: 500, description: 'the name of a queue, given once' }),
    ),
    limit: Type.Integer({
      minimum: 1,
      maximum: 1000,
      default: 100,
      description: 'a whole number from 1 to 1000',
    }),
  },
  closed,
);

export const WithdrawQuery = Type.Object(
  {
    reason: Type.String({
      minLength: 1,
      maxLength: 500,
      default: 'withdrawn over HTTP',
      description: 'a text of 1 to 500 characters',
    }),
  },
  closed,
);

const size = (description: string, minimum = 0) =>
  Type.Optional(Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description }));
const purpose = Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'a text' }));

const requirements = Type.Object(
  {
    nCore: size('a whole number of cores', 1),
    minRamCount: size('a whole number of MB'),
    maxDiskCount: size('a whole number of MB'),
    maxWalltime: size('a whole number of seconds'),
    resourceType: purpose,
    jobType: purpose,
    pilotType: purpose,
    prodSourceLabel: purpose,
  },
  { ...closed, description: "an object with those that differ from the queue's own" },
);

export const RequestToMake = Type.Object(
  {
    queue: Type.String({ minLength: 1, maxLength: 500, description: 'the name of a queue' }),
    count: Type.Integer({
      minimum: 1,
      maximum: mostWorkers,
      default: 1,
      description: `a whole number from 1 to ${mostWorkers}`,
    }),
    requirements: Type.Optional(requirements),
    // Its own check names each mistake.
    payload: Type.Optional(
      Type.Object(
        {},
        {
          additionalProperties: true,
          description:
            'an object { values: { KEY: text }, files: [{ name, mode, content (base64), secret? }], argv: [text], env: { NAME: text } }, each part optional',
        },
      ),
    ),
  },
  { ...closed, description: 'a JSON object' },
);

const request = {
  id: Type.String(),
  queueName: Type.String(),
  state: Type.Union(requestStates.map((state) => Type.Literal(state))),
  count: Type.Integer(),
  workers: Type.Object(
    Object.fromEntries(workerStatuses.map((status) => [status, Type.Optional(Count)])),
    closed,
  ),
  requirements,
  payload: Type.Array(Type.String(), { description: 'Parts of its payload.' }),
  by: Type.String(),
  creationTime: Time,
  servedTime: orNull(Time),
  withdrawnTime: orNull(Time),
  withdrawReason: Text,
  reasons: Type.Array(Reason, { description: 'Why it waits.' }),
};
export const RequestAnswer = Type.Object(request, { ...closed, description: 'A request.' });
export const RequestsAnswer = Type.Array(RequestAnswer);
export const RequestWithWorkersAnswer = Type.Object(
  { ...request, shownWorkers: WorkersAnswer },
  { ...closed, description: 'A request with its workers, at most 1000.' },
);
