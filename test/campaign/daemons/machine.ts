import type { PostgresqlServer } from '../../support/postgresql.ts';
import { CuttingProxy, SilentProxy } from '../../support/postgresql-proxy.ts';
import type { Site } from '../../support/site.ts';
import type { Service } from './service.ts';

/** The way of one daemon to the database. */
export class Link {
  readonly cutting: CuttingProxy;
  readonly silent: SilentProxy;

  static async open(server: PostgresqlServer): Promise<Link> {
    const link = new Link(server);
    await link.silent.start();
    await link.cutting.start();
    return link;
  }

  private constructor(server: PostgresqlServer) {
    this.silent = new SilentProxy(server.directory);
    this.cutting = new CuttingProxy(this.silent.directory);
  }

  close(): void {
    this.cutting.close();
    this.silent.close();
  }
}

/** One of the machines that have a daemon. */
export interface Machine {
  readonly site: Site;
  readonly link: Link;
  readonly service: Service;
}
