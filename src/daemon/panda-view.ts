import { readFileSync } from 'node:fs';
import { readCredentialFile } from '../clients/credentials/files.ts';
import { readToken } from '../clients/credentials/jwt.ts';
import { readX509 } from '../clients/credentials/x509.ts';
import type { SourceDefinition } from '../plugins/contracts/index.ts';
import type { PandaServer } from '../plugins/contracts/panda-server.ts';
import type { PandaLinkStatus } from '../plugins/contracts/panda-status.ts';
import type { NewsBacklog } from '../store/news.ts';
import { isoTime } from '../util/clock.ts';
import { messageOf } from '../worker/errors.ts';
import { remedyOf } from './every-code.ts';
import type { StateDir } from './state-dir.ts';

/** The login that the settings name, as it is now. */
export interface PandaLoginView {
  readonly kind: PandaServer['login']['kind'];
  /** The file that holds it; null for a token in the settings themselves. */
  readonly file: string | null;
  readonly subject: string | null;
  readonly expires: string | null;
  /** Seconds; below 0 it has ended. */
  readonly remaining: number | null;
  /** Why it cannot be used; null where it can. */
  readonly problem: string | null;
}

/** The link to the PanDA server as it is shown. Times are ISO 8601 UTC. */
export interface PandaView {
  /** Null where the settings name no server with a login. */
  readonly server: string | null;
  readonly login: PandaLoginView | null;
  readonly daemonRuns: boolean;
  /** Null where the link never ran. */
  readonly link: PandaLinkView | null;
  /** Changes of workers that the server has not taken yet; null where no database is there. */
  readonly outbox: { readonly waiting: number; readonly oldest: string | null } | null;
}

export interface PandaLinkView {
  /** The state that is shown is of this time. */
  readonly at: string;
  readonly url: string;
  readonly harvesterId: string;
  readonly started: string;
  /** Why no queue gets workers by the link yet. */
  readonly starting: string | null;
  /** By call, when the server answered last. */
  readonly answered: Readonly<Record<string, string>>;
  readonly failures: readonly {
    readonly call: string;
    readonly since: string;
    readonly code: string;
    readonly message: string;
    readonly remedy: string | null;
  }[];
  /** Newest first. */
  readonly commands: readonly {
    readonly at: string;
    readonly id: number;
    readonly command: string;
    readonly outcome: string;
  }[];
  readonly sites: readonly PandaSiteView[];
  readonly reports: {
    readonly lastTaken: string | null;
    readonly taken: number;
    readonly refused: readonly number[];
  };
}

export interface PandaSiteView {
  readonly site: string;
  readonly queues: readonly string[];
  readonly statistics: string | null;
  readonly order: {
    readonly created: string;
    readonly taken: string;
    /** By resource type. */
    readonly said: Readonly<Record<string, number>>;
    readonly wanted: Readonly<Record<string, number>>;
    readonly rest: number;
  } | null;
  readonly jobs: {
    readonly activated: number;
    readonly at: string;
    readonly instances: number | null;
  } | null;
}

export interface PandaViewParts {
  readonly server: PandaServer | undefined;
  readonly status: PandaLinkStatus | undefined;
  /** The news that wait for the source that uses the server; undefined where no database is there. */
  readonly backlog: readonly NewsBacklog[] | undefined;
  readonly daemonRuns: boolean;
  /** ms UTC */
  readonly now: number;
}

/** All that an operator asks of the link, whether the daemon runs or not. */
export async function pandaView(parts: PandaViewParts): Promise<PandaView> {
  const { server, status, backlog, daemonRuns, now } = parts;
  return {
    server: server?.url ?? null,
    login: server === undefined ? null : await loginView(server, now),
    daemonRuns,
    link: status === undefined ? null : linkView(status),
    outbox: backlog === undefined ? null : outboxOf(backlog),
  };
}

/** The state of the link as the daemon wrote it down last; undefined where it never did. */
export function readLinkStatus({ pandaLink }: StateDir): PandaLinkStatus | undefined {
  try {
    const written: unknown = JSON.parse(readFileSync(pandaLink, 'utf8'));
    return isStatus(written) ? written : undefined;
  } catch {
    // The link never ran, or another version wrote another form: the next write of a running daemon brings it.
    return undefined;
  }
}

/** Kinds of the news that wait for the server. */
export function kindsOfLink(sources: readonly Pick<SourceDefinition, 'name' | 'needsServer'>[]): Set<string> {
  return new Set(sources.filter(({ needsServer }) => needsServer).map(({ name }) => name));
}

function isStatus(value: unknown): value is PandaLinkStatus {
  if (typeof value !== 'object' || value === null) return false;
  const { writtenAt, url, failures, commands, sites, lastAnswers, reports } = value as Partial<
    Record<keyof PandaLinkStatus, unknown>
  >;
  return (
    typeof writtenAt === 'number' &&
    typeof url === 'string' &&
    [failures, commands, sites].every(Array.isArray) &&
    [lastAnswers, reports].every((one) => typeof one === 'object' && one !== null)
  );
}

async function loginView({ login }: PandaServer, now: number): Promise<PandaLoginView> {
  const { kind } = login;
  const file = kind === 'x509' ? login.certFile : 'file' in login.token ? login.token.file : null;
  const unknown = { kind, file, subject: null, expires: null, remaining: null };
  try {
    const facts = await factsOf(login);
    const { subject, expiresAt } = facts;
    const remaining = expiresAt === undefined ? null : Math.round((expiresAt - now) / 1000);
    const hasEnded = remaining !== null && remaining <= 0;
    return {
      kind,
      file,
      subject,
      expires: expiresAt === undefined ? null : isoTime(expiresAt),
      remaining,
      problem: hasEnded ? 'it has ended' : null,
    };
  } catch (error) {
    return { ...unknown, problem: messageOf(error) };
  }
}

/** @throws Error which says why it cannot be read */
async function factsOf(
  login: PandaServer['login'],
): Promise<{ readonly subject: string; readonly expiresAt?: number | undefined }> {
  if (login.kind === 'oidc' && 'text' in login.token) return readToken(login.token.text, 'auth_token');
  const path = login.kind === 'x509' ? login.certFile : 'file' in login.token ? login.token.file : '';
  const { bytes } = await readCredentialFile(path);
  const text = bytes.toString('utf8');
  return login.kind === 'x509' ? readX509(text, path) : readToken(text, path);
}

function linkView(status: PandaLinkStatus): PandaLinkView {
  const { reports, lastAnswers } = status;
  return {
    at: isoTime(status.writtenAt),
    url: status.url,
    harvesterId: status.harvesterId,
    started: isoTime(status.startedAt),
    starting: status.starting ?? null,
    answered: Object.fromEntries(Object.entries(lastAnswers).map(([call, at]) => [call, isoTime(at)])),
    failures: status.failures.map(({ call, since, code, message }) => ({
      call,
      since: isoTime(since),
      code,
      message,
      remedy: remedyOf(code) ?? null,
    })),
    commands: status.commands.map(({ at, id, command, outcome }) => ({
      at: isoTime(at),
      id,
      command,
      outcome,
    })),
    sites: status.sites.map(({ site, queues, statisticsAt, order, jobs }) => ({
      site,
      queues,
      statistics: statisticsAt === undefined ? null : isoTime(statisticsAt),
      order:
        order === undefined
          ? null
          : {
              created: isoTime(order.createdAt),
              taken: isoTime(order.takenAt),
              said: order.said,
              wanted: order.wanted,
              rest: order.rest,
            },
      jobs:
        jobs === undefined
          ? null
          : { activated: jobs.activated, at: isoTime(jobs.at), instances: jobs.instances ?? null },
    })),
    reports: {
      lastTaken: reports.lastTaken === undefined ? null : isoTime(reports.lastTaken),
      taken: reports.taken,
      refused: reports.refused,
    },
  };
}

function outboxOf(backlog: readonly NewsBacklog[]): NonNullable<PandaView['outbox']> {
  const waiting = backlog.reduce((sum, { count }) => sum + count, 0);
  const oldest = Math.min(...backlog.map((one) => one.oldest));
  return { waiting, oldest: Number.isFinite(oldest) ? isoTime(oldest) : null };
}
