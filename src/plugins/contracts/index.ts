/**
 * The contracts between the agents and the plugins: everything a backend has to know, and all that a third-party
 * plugin may import (as `thresher/plugin`). docs/plugins.md shows how to write one; test/contract/ holds the suite
 * that every backend passes.
 */
export {
  type AnyBackend,
  type AnyDefinition,
  type Backend,
  type BackendConnection,
  type BackendDefinition,
  type BackendSection,
  type ConnectedQueue,
  type ConnectionHost,
  type ConnectionPlace,
  defineBackend,
  type DefinitionOf,
  type SubmitterFacts,
} from './backend.ts';
export type { Context, Host, Log, LogServer } from './context.ts';
export type {
  CredentialFacts,
  CredentialManager,
  CredentialState,
  RenewOutcome,
  WriteTarget,
} from './credential-manager.ts';
export {
  defineSource,
  type Desk,
  type Group,
  type HeldCredential,
  type LoggedTrouble,
  type LogUrls,
  type OperatorRequests,
  type OwnQueue,
  type OwnServices,
  type Request,
  type Source,
  type SourceDefinition,
  type SourceHost,
  type SourceMemory,
  type SourceInput,
  type RequestSeries,
  type SourceQueue,
  type Wanted,
} from './source.ts';
export type { LogReader, LogRequest, PeekRequest } from './log-reader.ts';
export type { PandaLinkSettings, PandaServer, PandaServerLogin } from './panda-server.ts';
export { accessPointPlaceholders, type AccessPointValues, type Messenger } from './messenger.ts';
export type { CheckResult, Monitor, ObservationSink } from './monitor.ts';
export {
  type BackendKind,
  type CheckContext,
  definePlugin,
  type Definition,
  type PluginDefinition,
  type PluginFailure,
  type PluginKind,
  type PluginOf,
} from './definition.ts';
export type { DefinitionProblem } from './definition-problem.ts';
export type { FamilyPart, Throttle, ThrottledQueue, Throttler, ThrottleFacts } from './throttler.ts';
export type { Rendered, RenderedFile } from './rendered.ts';
export type { LeftOutput, OutputReader } from './output-reader.ts';
export type { FindOutcome, NeededCredential, Preflight, SubmitOutcome, Submitter } from './submitter.ts';
export type { Found, GoneOutcome, Sweeper } from './sweeper.ts';
export type { SourceGauge } from './source-gauge.ts';
export { longestSourceBody, type SourceHttpAnswer, type SourceHttpRequest } from './source-http.ts';
export type { Observation } from '../../worker/observation.ts';
export type { Reason } from '../../worker/reason.ts';
export type { FinalStatus, WorkerStatus } from '../../worker/status.ts';
export type {
  Handle,
  Origin,
  Requirements,
  Worker,
  WorkerError,
  WorkerToStart,
} from '../../worker/worker.ts';
export type {
  Census,
  KnownWorker,
  OriginCount,
  OriginFilter,
  OriginKey,
  WorkerNews,
} from '../../worker/news.ts';
export type { OperatorRequest, WithdrawnRequest } from '../../worker/operator-request.ts';
export {
  commonParts,
  type Payload,
  type PayloadFile,
  type PayloadPart,
  payloadParts,
} from '../../worker/payload.ts';
export {
  payloadBounds,
  type PayloadProblem,
  payloadProblems,
  requirePayload,
} from '../../worker/payload-check.ts';
