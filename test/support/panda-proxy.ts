import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Fault, FaultProxy, type Injected, type Rule } from './fault-proxy.ts';
import type { PandaServer } from './panda.ts';

/** Calls of the server by their names, as a rule chooses them. */
export type PandaCallName =
  | 'heartbeat'
  | 'acquire_commands'
  | 'acknowledge_commands'
  | 'update_workers'
  | 'report_worker_statistics'
  | 'add_dialogs'
  | 'update_service_metrics'
  | 'get_current_worker_id'
  | 'get_resource_types'
  | 'active_job_stats_by_site';

/**
 * A fault proxy in front of the real PanDA server. It shows the server's own certificate. Towards the server it is the client
 * with this certificate, or with the token of the request where the request has one.
 */
export class PandaProxy implements AsyncDisposable {
  /** `https://127.0.0.1:PORT/api/v1` */
  readonly url: string;
  readonly #proxy: FaultProxy;

  static async inFrontOf(server: PandaServer, login = server.production): Promise<PandaProxy> {
    const certificates = dirname(server.ca);
    const read = (name: string) => readFileSync(join(certificates, name));
    const upstream = {
      url: new URL(server.url).origin,
      ca: readFileSync(server.ca),
      cert: readFileSync(login.cert),
      key: readFileSync(login.key),
    };
    return new PandaProxy(
      await FaultProxy.start(upstream, { cert: read('server.pem'), key: read('server.key') }),
    );
  }

  private constructor(proxy: FaultProxy) {
    this.#proxy = proxy;
    this.url = `${proxy.url}/api/v1`;
  }

  /** Hits calls of this name, or all without a name. `after`: only once the server has answered a call of that name. */
  inject(
    name: PandaCallName | undefined,
    fault: Fault,
    { after, ...rule }: Pick<Rule, 'skip' | 'times'> & { readonly after?: PandaCallName } = {},
  ): Injected {
    const when = () => after === undefined || this.count(after, true) > 0;
    return this.#proxy.inject({ ...rule, ...(name !== undefined && { name }), when, fault });
  }

  /** All faults end. */
  heal(): void {
    this.#proxy.heal();
  }

  /** Calls of this name so far; `answered`: those alone that the server answered. */
  count(name?: PandaCallName, answered = false): number {
    const { requests } = this.#proxy;
    return requests.filter(
      (request) =>
        (name === undefined || request.name === name) && (!answered || request.status !== undefined),
    ).length;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#proxy[Symbol.asyncDispose]();
  }
}
