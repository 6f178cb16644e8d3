import type { IncomingMessage } from 'node:http';
import { bounds } from '../bounds.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  LogStructSchema,
  NamedPodSchema,
  NamedPodsSchema,
  readCreate,
  readLogRequest,
  readPod,
  readPods,
  type Read,
} from '../../../clients/interlink/schemas.ts';
import type { PingResponse } from '../../../clients/interlink/wire.ts';
import type { Clock } from '../../../util/clock.ts';
import type { Log } from '../../../plugins/contracts/index.ts';
import type { PodService } from '../pod-service.ts';
import type { TrackedPod } from '../pods/tracked-pod.ts';
import { Refusal } from '../refusal.ts';
import { jsonOf, letGo, listIn, partsOf, PartsOfList } from './body.ts';
import type { LogStreams } from './log-streams.ts';

/** Header with the name by which interLink's own log calls a request. */
export const sessionHeader = 'interlink-http-session';

export interface ServedBackend {
  /** The answer to the ping while the backend is there. */
  ping(): PingResponse;
  state(): {
    /** Why the resources of the node were not learned last time. */
    readonly trouble: string | undefined;
    /** Those of the whole pool in HTCondor's own words. */
    readonly totals: string | undefined;
    readonly isHtcondor: boolean;
  };
}

export interface ServedPods {
  readonly service: PodService;
  readonly clock: Clock;
  readonly log: Log;
  readonly backend: ServedBackend;
  readonly version: string;
  /** Others may reach the sidecar, by whatever name they have for it. */
  readonly isOpen?: boolean;
}

/** The answer to /create. @throws Refusal */
export async function answerCreate(
  { service }: ServedPods,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const gone = goneOf(reply);
  const pod = await accepted(service, request);
  return service.created(pod, gone);
}

/** Nothing holds the body after this call: the answer may wait for the job for minutes, beside a thousand others. */
async function accepted(service: PodService, request: FastifyRequest): Promise<TrackedPod> {
  try {
    return await service.accept(wellFormed(readCreate(jsonOf(request.body, bounds.podValues))));
  } finally {
    letGo(request);
  }
}

/** Whatever is known of the Pod, the answer is that it is gone: nothing else ends the question. @throws Refusal */
export async function answerDelete({ service }: ServedPods, request: FastifyRequest): Promise<unknown> {
  const pod = readOnce(request, (body) => readPod(partsOf(body, NamedPodSchema, bounds.podValues)));
  await service.remove(pod);
  return { message: 'the Pod is deleted', podUID: pod.metadata.uid, podName: pod.metadata.name };
}

/** Requests for states of which it is not known which Pods they name. */
const unread = new WeakSet<FastifyRequest>();

/** Have a request for states count as a question for any Pod, where nobody can say for which ones it was. */
export function statusHooks({ service }: ServedPods) {
  const end = (request: FastifyRequest, why: string) => {
    if (unread.delete(request)) service.missed(why);
  };
  return {
    // The server's own hook has refused those who may not ask.
    onRequest: async (request: FastifyRequest) => {
      unread.add(request);
    },
    onSend: async (request: FastifyRequest, _reply: FastifyReply, payload: unknown) => {
      end(request, typeof payload === 'string' ? payload : 'it was refused');
    },
    onRequestAbort: async (request: FastifyRequest) => {
      end(request, 'the request broke off');
    },
  };
}

/** The body of a request for states. @throws Refusal */
export function statusBody(request: FastifyRequest, body: IncomingMessage): Promise<PartsOfList> {
  return listIn(request, body, NamedPodsSchema, bounds.bodyValues);
}

/** @throws Refusal */
export async function answerStatus(served: ServedPods, request: FastifyRequest): Promise<unknown> {
  const pods = readOnce(request, (body) => readPods(body instanceof PartsOfList ? body.value() : undefined));
  unread.delete(request);
  if (pods.length > 0) return served.service.status(pods);
  // A probe of the health of the sidecar asks the same, and knows nothing of Pods.
  if (isOfInterlink(request)) served.service.heardPing();
  const { trouble } = served.service;
  if (trouble !== undefined) throw new Refusal(503, trouble);
  return served.backend.ping();
}

/** interLink gives each of its requests a session. */
function isOfInterlink({ headers }: FastifyRequest): boolean {
  return headers[sessionHeader] !== undefined;
}

export function answerSystemInfo(served: ServedPods): unknown {
  const { service, clock, version, backend } = served;
  const { totals, isHtcondor, ...state } = backend.state();
  const trouble = service.trouble ?? state.trouble;
  const connected = trouble === undefined;
  const message = trouble ?? service.unread?.message;
  const { resources, taints } = backend.ping();
  return {
    status: message === undefined ? 'ok' : 'warning',
    timestamp: new Date(clock.now()).toISOString(),
    backend_connected: connected,
    // The names of interLink's HTCondor plugin.
    ...(isHtcondor && { htcondor_connected: connected }),
    ...(totals !== undefined && { condor_status_output: totals }),
    ...(message !== undefined && { message }),
    version,
    ...service.counts,
    ...(resources && { resources }),
    ...(taints && { taints }),
  };
}

/** @throws Refusal */
export async function answerLogs(
  { service }: ServedPods,
  streams: LogStreams,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const asked = readOnce(request, (body) =>
    readLogRequest(partsOf(body, LogStructSchema, bounds.bodyValues)),
  );
  await streams.send(asked, service, reply, goneOf(reply));
}

/** Aborts when the answer has gone out, or its caller has gone. */
function goneOf({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (raw.closed) gone.abort();
  raw.once('close', () => {
    gone.abort();
  });
  return gone.signal;
}

/** The body is needed no more then. @throws Refusal */
function readOnce<T>(request: FastifyRequest, reader: (body: unknown) => Read<T>): T {
  try {
    return wellFormed(reader(request.body));
  } finally {
    letGo(request);
  }
}

/** @throws Refusal */
function wellFormed<T>(read: Read<T>): T {
  if (read.ok) return read.value;
  const more = read.problems.length > 5 ? [`${read.problems.length - 5} further mistakes`] : [];
  throw new Refusal(400, [...read.problems.slice(0, 5), ...more].join('; '));
}
