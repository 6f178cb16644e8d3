import { isIP } from 'node:net';
import { hostname } from 'node:os';
import type { FastifyInstance } from 'fastify';
import { readPandaServer } from '../config/settings/panda-login-files.ts';
import type { LoadedSettings } from '../config/settings/settings.ts';
import { DaemonMetrics } from '../daemon/metrics/daemon-metrics.ts';
import { type HtcJobReader, htcJobsOf } from '../daemon/htcjobs.ts';
import { pandaView, readLinkStatus } from '../daemon/panda-view.ts';
import { openBesideDaemon } from '../daemon/reader.ts';
import { stateDirAt } from '../daemon/state-dir.ts';
import type { Service } from '../daemon/services/service.ts';
import { renderedText } from '../daemon/rendered-text.ts';
import { renderExisting } from '../daemon/rendering.ts';
import type { DaemonFace } from '../daemon/standby.ts';
import { readVersion } from '../util/version.ts';
import type { Log, SourceHttpRequest } from '../plugins/contracts/index.ts';
import type { WorkerRecord } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../util/clock.ts';
import { hasCode } from '../util/files.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import { messageOf, ThresherError } from '../worker/errors.ts';
import { isLoopback, nameInHost } from './access.ts';
import { makeApp } from './app.ts';
import type { Served } from './served.ts';
import { TokenFile, type TokenFiles, writeTokenOf } from './token-file.ts';

export interface HttpOptions {
  readonly settings: LoadedSettings;
  readonly clock: Clock;
  /** The daemon's. */
  readonly files: OperatorFiles;
  readonly log: Log;
}

/**
 * Health, metrics and status of a daemon over HTTP, and requests for workers. It reads the database beside the daemon, as the command
 * line does; logs and requests go through the daemon.
 */
export class HttpServer {
  /** For the daemon to count with. */
  readonly metrics: DaemonMetrics;
  readonly #options: HttpOptions;
  readonly #tokens: TokenFiles;
  #daemon: DaemonFace | undefined;
  #app: FastifyInstance | undefined;
  #store: Store | undefined;
  #htcJobs: HtcJobReader | undefined;
  #url: string | undefined;

  /** Listens nowhere yet. */
  constructor(options: HttpOptions) {
    const { settings, clock, files } = options;
    this.#options = options;
    this.metrics = new DaemonMetrics(clock);
    this.#tokens = tokenFilesOf(settings, files);
  }

  /** Finds mistakes that need no daemon. @throws ThresherError `http-token-missing`, `http-token-unreadable`, `http-tokens-same` */
  async check(): Promise<void> {
    await this.#tokens.read?.token();
    await writeTokenOf(this.#tokens);
    const { settings } = this.#options;
    if (needsToken(settings)) throw tokenMissing(settings);
  }

  /** Address to ask; undefined while the server does not listen. */
  get url(): string | undefined {
    return this.#url;
  }

  /** @throws ThresherError `http-port-in-use`, `http-address` */
  async open(daemon: DaemonFace): Promise<void> {
    this.#daemon = daemon;
    // A standby that takes over goes on at the same address.
    if (this.#app !== undefined) return;
    const { settings, clock, files, log } = this.#options;
    const { factoryId } = daemon;
    const now = () => this.#daemon ?? daemon;
    const { store } = await openBesideDaemon(settings, 'read', factoryId);
    this.#store = store;
    const name = hostname();
    const { publicUrl } = settings.values.http;
    const publicName = publicUrl === undefined ? [] : [nameInHost(new URL(publicUrl).host)];
    this.#htcJobs = htcJobsOf(settings, { clock, random: () => 0.5, files });
    // Nothing of a worker that exists is drawn by lot.
    const rendering = { settings, clock, files, random: () => 0, log };
    const served = {
      clock,
      log,
      store,
      ownNames: [hostOf(settings), name, name.split('.')[0] ?? name, ...publicName],
      metrics: this.metrics,
      factoryId,
      requests: {
        ask: (...asked: Parameters<Served['requests']['ask']>) => now().operatorDesk.ask(...asked),
        withdraw: (...asked: Parameters<Served['requests']['withdraw']>) =>
          now().operatorDesk.withdraw(...asked),
        reasonsOf: (...asked: Parameters<Served['requests']['reasonsOf']>) =>
          now().operatorDesk.reasonsOf(...asked),
      },
      leader: () => now().leader,
      version: readVersion(),
      logsOf: (worker: WorkerRecord) => now().logsOf(worker),
      renderedOf: async (worker: WorkerRecord) =>
        renderedText(await renderExisting(worker, store, rendering)),
      health: () => now().health,
      credentials: () => now().credentials,
      services: () => now().services,
      waiting: () => now().waiting,
      gauges: () => now().gauges,
      stopping: () => now().isStopping,
      askSource: (kind: string, request: SourceHttpRequest) => now().askSource(kind, request),
      htcJobs: this.#htcJobs,
      panda: async () => {
        const kinds = now().kindsOfLink;
        const { server } = await readPandaServer(settings, files);
        return pandaView({
          server,
          status: readLinkStatus(stateDirAt(settings.stateDir)),
          backlog: (await store.news.backlog()).filter(({ kind }) => kinds.has(kind)),
          daemonRuns: true,
          now: clock.now(),
        });
      },
    };
    this.#app = await makeApp(served, this.#tokens);
    this.#url = await this.#listen(this.#app);
    log.info('listening', { url: this.#url });
  }

  /** As a service of the daemon. It answers until all others have stopped: `/readyz` says that the daemon stops. */
  serving(daemon: DaemonFace): Service {
    const name = 'http';
    return {
      name,
      required: true,
      last: true,
      begin: () => this.open(daemon),
      stop: () => this.close(),
      health: () => [{ name }],
    };
  }

  async close(): Promise<void> {
    this.#url = undefined;
    await this.#app?.close();
    await this.#htcJobs?.close();
    await this.#store?.close();
  }

  async #listen(app: FastifyInstance): Promise<string> {
    const { settings } = this.#options;
    const { port } = settings.values.http;
    const host = hostOf(settings);
    const named = host.includes(':') ? `[${host}]` : host;
    const place = `${named}:${port}`;
    try {
      await app.listen({ host, port });
    } catch (error) {
      const facts = { host, port };
      if (hasCode(error, 'EADDRINUSE')) {
        const message =
          `${place} is in use by another program, perhaps another thresher: set http.port in ${settings.file} ` +
          'to a free one (0: any), or http.enabled to false';
        throw new ThresherError('http-port-in-use', message, facts, { cause: error });
      }
      const message = `thresher cannot listen on ${place}, which http.host and http.port in ${settings.file} name: ${messageOf(error)}`;
      throw new ThresherError('http-address', message, facts, { cause: error });
    }
    const addresses = app.addresses().filter((address) => typeof address === 'object');
    // A file defines the addresses of "localhost".
    if (this.#tokens.read === undefined && !addresses.every(({ address }) => isLoopback(address))) {
      throw tokenMissing(settings);
    }
    return `http://${named}:${addresses[0]?.port ?? port}/`;
  }
}

export interface HttpMistake {
  /** The setting. */
  readonly pointer: string;
  readonly error: ThresherError;
}

/**
 * The reason for which a daemon with these settings would not start; undefined also if this user may not read the
 * token.
 */
export async function httpMistake(
  settings: LoadedSettings,
  files: OperatorFiles,
): Promise<HttpMistake | undefined> {
  if (!settings.values.http.enabled) return undefined;
  if (needsToken(settings)) return { pointer: '/http/host', error: tokenMissing(settings) };
  const tokens = tokenFilesOf(settings, files);
  for (const [pointer, look] of [
    ['/http/tokenFile', () => tokens.read?.token()],
    ['/http/writeTokenFile', () => writeTokenOf(tokens)],
  ] as const) {
    try {
      await look();
    } catch (error) {
      if (!(error instanceof ThresherError)) throw error;
      if (!hasCode(error.cause, 'EACCES', 'EPERM')) return { pointer, error };
    }
  }
  return undefined;
}

function tokenFilesOf({ tokenFile, writeTokenFile }: LoadedSettings, files: OperatorFiles): TokenFiles {
  return {
    read: tokenFile === undefined ? undefined : new TokenFile(tokenFile, files),
    write:
      writeTokenFile === undefined ? undefined : new TokenFile(writeTokenFile, files, 'http.writeTokenFile'),
  };
}

function needsToken(settings: LoadedSettings): boolean {
  return settings.tokenFile === undefined && !isLoopback(hostOf(settings));
}

/** Node wants this form: an IPv6 address may be written in brackets, as in a URL. */
function hostOf({ values }: Pick<LoadedSettings, 'values'>): string {
  return values.http.host.replace(/^\[(.*)\]$/, '$1');
}

function tokenMissing({ file, values }: LoadedSettings): ThresherError {
  const { host } = values.http;
  // The address of a name may change at any time, so the name is not looked up.
  const reach =
    isIP(hostOf({ values })) === 0
      ? 'a name that other machines may reach'
      : 'which other machines can reach';
  const message =
    `http.host in ${file} is ${host}, ${reach}: set http.tokenFile to a file with a token, ` +
    'or http.host to 127.0.0.1';
  return new ThresherError('http-token-missing', message, { host });
}
