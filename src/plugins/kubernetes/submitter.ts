import { stat } from 'node:fs/promises';
import { ThresherError, toReason } from '../../worker/errors.ts';
import { posix, resolve } from 'node:path';
import pMap from 'p-map';
import { isKubernetesError } from '../../clients/kubernetes/errors.ts';
import { clusterName, secretKeyName } from '../../clients/kubernetes/place.ts';
import type { Reason } from '../../worker/reason.ts';
import type { PayloadPart } from '../../worker/payload.ts';
import type { Worker, WorkerError, WorkerToStart } from '../../worker/worker.ts';
import type { Context } from '../contracts/context.ts';
import type { DefinitionProblem } from '../contracts/definition-problem.ts';
import { payloadNotes, payloadRefusal } from '../contracts/payload-refusal.ts';
import type { Rendered } from '../contracts/rendered.ts';
import type { FindOutcome, Preflight, SubmitOutcome, Submitter } from '../contracts/submitter.ts';
import { type Creation, creationOf } from './creation.ts';
import { dryRun } from './dry-run.ts';
import { findOutcome, handleOf, removeFence, standingOf } from './fence.ts';
import { starterIn } from './template/fill.ts';
import { JobTexts } from './template/job-texts.ts';
import type { K8sNamespace } from './namespace.ts';
import { type JobMaker, QueueTemplate, withStandIns } from './queue-template.ts';
import { begin } from './payload-objects.ts';
import type { PilotsStarter } from './starter/pilots-starter.ts';
import type { ProxySecret, ProxySecrets } from './proxy-secrets.ts';
import { renderJob } from './render.ts';
import type { Needs, Rights } from './rights.ts';
import { secretAt } from './template/mounted-secret.ts';
import { type K8sSubmitterConfig, namespaceOf } from './schema.ts';
import { payloadObjectOf } from './template/payload.ts';
import type { KubernetesTemplate } from './template/template.ts';

export interface SubmitterParts {
  readonly namespace: K8sNamespace;
  readonly rights: Rights;
  readonly proxies: ProxySecrets;
  readonly starter: PilotsStarter;
  /** For workers of all queues of the namespace. */
  readonly jobMaker: () => JobMaker;
  readonly config: K8sSubmitterConfig;
  readonly context: Context;
}

/** Creates a Job for each worker. Its name is the worker's, so that the server itself refuses a second one. */
export class K8sSubmitter implements Submitter {
  readonly #parts: SubmitterParts;
  readonly #template: QueueTemplate;
  /** The Secrets that `credentials` found in one version of the template: a pass asks for them several times. */
  #mounted: { readonly version: string; readonly names: readonly string[] } | undefined;

  constructor(parts: SubmitterParts) {
    const { config, context } = parts;
    this.#parts = parts;
    this.#template = new QueueTemplate({ config, configDir: context.configDir }, context);
  }

  async preflight(signal: AbortSignal): Promise<Preflight> {
    const { rights } = this.#parts;
    const template = await this.#template.read();
    const problems: Reason[] = Array.isArray(template) ? template : [];
    const proxyFile = this.#proxyFile();
    try {
      if (proxyFile !== undefined) await this.#parts.proxies.read(proxyFile);
    } catch (error) {
      problems.push(toReason(error));
    }
    try {
      problems.push(...(await rights.missing(this.#needs(template), signal)));
    } catch (error) {
      problems.push(toReason(error));
    }
    return { problems };
  }

  async submit(
    workers: readonly WorkerToStart[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, SubmitOutcome>> {
    const outcomes = new Map<number, SubmitOutcome>();
    const refuseAll = (error: WorkerError) => {
      for (const { workerId } of workers)
        outcomes.set(workerId, { kind: 'rejected', permanent: false, error });
      return outcomes;
    };
    const template = await this.#template.read();
    if (Array.isArray(template)) {
      return refuseAll({ code: 'preflight', message: template.map(({ message }) => message).join('; ') });
    }
    let proxySecret: ProxySecret | undefined;
    try {
      proxySecret = await this.#proxySecret(signal);
      if (this.#needs(template).starter) await this.#parts.starter.ensure(signal);
    } catch (error) {
      return refuseAll(toReason(error));
    }
    const { nProcesses } = this.#parts.config;
    const fill = this.#template.filler(template, proxySecret);
    const texts = new JobTexts(fill, this.#parts.context.factoryId);
    const submitOne = async (worker: WorkerToStart) => {
      const refusal = payloadRefusal(worker, template.payloadKeys);
      const outcome: SubmitOutcome =
        refusal === undefined
          ? await this.#submitOne(creationOf(worker, fill, texts), worker, signal)
          : { kind: 'rejected', permanent: true, error: refusal };
      outcomes.set(worker.workerId, outcome);
    };
    await pMap(workers, submitOne, { concurrency: nProcesses });
    return outcomes;
  }

  async credentials(): Promise<readonly string[]> {
    const file = this.#proxyFile();
    const { proxySecretPath, tokenDir, pandaTokenFilename } = this.#parts.config;
    // A file of this machine counts before a proxy in a Secret. The pilot's token is beside either.
    const paths = [
      ...(file === undefined && proxySecretPath !== undefined ? [proxySecretPath] : []),
      ...(tokenDir === undefined || pandaTokenFilename === undefined
        ? []
        : [posix.join(tokenDir, pandaTokenFilename)]),
    ];
    const own = file === undefined ? [] : [file];
    if (paths.length === 0) return own;
    const version = await this.#versionOf(this.#template.file);
    if (this.#mounted?.version !== version) this.#mounted = { version, names: await this.#mountedAt(paths) };
    return [...own, ...this.#mounted.names];
  }

  async #mountedAt(paths: readonly string[]): Promise<readonly string[]> {
    const { config, context } = this.#parts;
    const template = await this.#template.read();
    if (Array.isArray(template)) return [];
    const cluster = clusterName(config, context.configDir);
    return paths.flatMap((path) => {
      const mounted = secretAt(template, path);
      return mounted === undefined
        ? []
        : [secretKeyName(cluster, namespaceOf(config), mounted.secret, mounted.key)];
    });
  }

  async find(workers: readonly Worker[], signal: AbortSignal): Promise<ReadonlyMap<number, FindOutcome>> {
    const { namespace, config, jobMaker } = this.#parts;
    const outcomes = new Map<number, FindOutcome>();
    const makeJob = jobMaker();
    const findOne = async (worker: Worker) => {
      outcomes.set(worker.workerId, await findOutcome(namespace, worker, makeJob, signal));
    };
    await pMap(workers, findOne, { concurrency: config.nProcesses });
    return outcomes;
  }

  async rehearse(
    worker: WorkerToStart,
    signal: AbortSignal,
    given: readonly PayloadPart[] = [],
    beside: readonly PayloadPart[] = [],
  ): Promise<readonly DefinitionProblem[]> {
    const template = await this.#template.read();
    // The checks before the rehearsal told the problems of the file.
    if (Array.isArray(template)) return [];
    // The Secret is made with the first worker; the server does not ask for it before its Pod starts.
    const proxySecret = this.#proxyFile() === undefined ? undefined : { name: 'not-made-yet', key: 'proxy' };
    const job = this.#template.jobOf(template, withStandIns(worker, template), proxySecret);
    const { namespace, rights } = this.#parts;
    const files = given.includes('files') ? 'always' : beside.includes('files') ? 'sometimes' : 'never';
    const needs = { ...this.#needs(template), files } as const;
    return dryRun({ namespace, rights, needs }, template, job, signal);
  }

  async render(worker: WorkerToStart): Promise<Rendered> {
    const { proxies, config, context } = this.#parts;
    const template = await this.#template.read();
    if (!isTemplate(template))
      throw new ThresherError('preflight', template.map(({ message }) => message).join('; '));
    const notes = payloadNotes(worker, template.payloadKeys);
    const file = this.#proxyFile();
    const secret = file === undefined ? undefined : await proxies.secretOf(context.queue, file);
    return renderJob({
      job: this.#template.jobOf(template, worker, secret),
      pilot: template.pilot,
      template: template.file,
      kubeconfig: config.k8s_config_file && resolve(context.configDir, config.k8s_config_file),
      proxy: file !== undefined && secret !== undefined ? { file, secret } : undefined,
      starter: this.#needs(template).starter,
      payload: { object: payloadObjectOf(worker), notes },
    });
  }

  async #submitOne(creation: Creation, worker: WorkerToStart, signal: AbortSignal): Promise<SubmitOutcome> {
    const { namespace, rights } = this.#parts;
    namespace.refused.delete(worker.workerId);
    const { beginning } = creation;
    try {
      const missing =
        beginning === undefined ? [] : await rights.missingForFiles([beginning.payload.kind], signal);
      const [first] = missing;
      if (first !== undefined)
        return this.#refused(worker, {
          code: first.code,
          message: missing.map(({ message }) => message).join('; '),
        });
      return await this.#create(creation, worker, signal);
    } catch (error) {
      if (!isKubernetesError(error, 'kubernetes-already-exists')) return this.#refusal(error, worker);
    }
    try {
      const standing = await standingOf(namespace, worker, signal);
      switch (standing.kind) {
        case 'worker':
          return { kind: 'accepted', handle: standing.handle };
        case 'stranger': {
          const message = `there is a Job ${worker.name} in ${namespace.name} that is not this worker's: remove it, or give this factory another id`;
          return { kind: 'rejected', permanent: true, error: { code: 'k8s-name-taken', message } };
        }
        case 'fence':
          if (standing.attempt >= worker.attempt) {
            const message = `attempt ${worker.attempt} had been given up before it arrived`;
            return { kind: 'rejected', permanent: false, error: { code: 'k8s-fenced', message } };
          }
          await removeFence(namespace, worker.name, standing, signal);
          return await this.#create(creation, worker, signal);
        case 'nothing': {
          const message = `the Job ${worker.name} was there a moment ago, and is gone`;
          return { kind: 'unknown', error: { code: 'kubernetes-not-found', message } };
        }
      }
    } catch (error) {
      // The name was taken a moment ago: who took it is asked by `find`.
      return { kind: 'unknown', error: toReason(error) };
    }
  }

  /** @throws what the creation of the Job throws */
  async #create(
    { text, beginning }: Creation,
    worker: WorkerToStart,
    signal: AbortSignal,
  ): Promise<SubmitOutcome> {
    const { namespace } = this.#parts;
    const options = { signal, metadataOnly: true };
    const created = await namespace.client.createText(namespace.jobs, text, options);
    const uid = created.metadata?.uid;
    if (beginning === undefined) return accepted(worker, uid);
    const outcome = await begin(namespace, worker, { ...beginning, uid: uid ?? '' }, signal);
    switch (outcome.kind) {
      case 'begun':
        return accepted(worker, uid);
      case 'refused':
        return this.#refused(worker, outcome.error);
      case 'unknown':
        return outcome;
    }
  }

  /** The server has nothing of this attempt, and will get nothing. */
  #refused({ workerId, attempt }: Worker, error: WorkerError): SubmitOutcome {
    this.#parts.namespace.refused.set(workerId, attempt);
    return { kind: 'rejected', permanent: false, error };
  }

  #refusal(error: unknown, worker: Worker): SubmitOutcome {
    // Whatever else is thrown may have come at any moment, also behind the creation.
    const isRefusal = isKubernetesError(error) ? !error.maybeDone : error instanceof ThresherError;
    if (!isRefusal) return { kind: 'unknown', error: toReason(error) };
    this.#parts.namespace.refused.set(worker.workerId, worker.attempt);
    const permanent = isKubernetesError(error, 'kubernetes-invalid');
    return { kind: 'rejected', permanent, error: toReason(error) };
  }

  /** Path of the proxy whose content the pilots get. */
  #proxyFile(): string | undefined {
    const { config, context } = this.#parts;
    if (config.proxySecretPath !== undefined || config.x509UserProxy === undefined) return undefined;
    return resolve(context.configDir, config.x509UserProxy);
  }

  async #proxySecret(signal: AbortSignal): Promise<ProxySecret | undefined> {
    const file = this.#proxyFile();
    return file === undefined
      ? undefined
      : this.#parts.proxies.ensure(this.#parts.context.queue, file, signal);
  }

  #needs(template: KubernetesTemplate | readonly Reason[]): Needs {
    const starter = isTemplate(template) && starterIn(template, this.#parts.config)?.ours === true;
    return { secrets: this.#proxyFile() !== undefined, starter };
  }

  /** Another text whenever the file is written or replaced. */
  async #versionOf(file: string): Promise<string> {
    try {
      const found = await this.#parts.context.files.run(file, 'a look at', () =>
        stat(file, { bigint: true }),
      );
      const { mtimeNs, ctimeNs, ino, size } = found;
      return [mtimeNs, ctimeNs, ino, size].join(' ');
    } catch {
      // The reader of the file tells its problems.
      return '';
    }
  }
}

function isTemplate(read: KubernetesTemplate | readonly Reason[]): read is KubernetesTemplate {
  return !Array.isArray(read);
}

function accepted({ name }: Worker, uid: string | undefined): SubmitOutcome {
  return { kind: 'accepted', handle: handleOf(name, uid) };
}
