import type { PandaView } from '../daemon/panda-view.ts';
import type { MemberView } from '../daemon/sharing/members-view.ts';
import type { ServiceHealth } from '../daemon/services/service.ts';
import type { Health } from '../daemon/supervision/health.ts';
import type { QueueView, WorkerView } from '../daemon/view.ts';
import type { LeaseHolder } from '../store/lease-holder.ts';
import { isoTime } from '../util/clock.ts';
import type { Reason } from '../worker/reason.ts';
import { isFinal, workerStatuses } from '../worker/status.ts';
import { empty, html, type Html } from './html.ts';
import { ago, layout, statusClass } from './page-layout.ts';

export interface FactoryFacts {
  readonly factoryId: string;
  readonly version: string;
  /** Who has the factory, where this daemon is a standby. */
  readonly leader: LeaseHolder | undefined;
  /** The daemons that share the factory; empty where one daemon has all of it. */
  readonly members: readonly MemberView[];
  readonly now: number;
  /** The queue whose workers are shown; undefined: all queues. */
  readonly queue: string | undefined;
  readonly queues: readonly QueueView[];
  /** Newest first. */
  readonly workers: readonly WorkerView[];
  readonly stuck: Health['stuck'];
  readonly services: readonly ServiceHealth[];
  readonly orphans: number;
  readonly panda: PandaView;
}

/** The front page: what every queue does, why it stands still, and the latest workers. */
export function factoryPage(facts: FactoryFacts): Html {
  const { factoryId, version, now, queue, queues, workers } = facts;
  const shown = queue === undefined ? queues : queues.filter(({ name }) => name === queue);
  const of = queue === undefined ? html`` : html` of ${queue}`;
  const body = html`<header>
      <h1>thresher</h1>
      <p class="dim">
        factory ${factoryId} · version ${version} · ${isoTime(now).slice(0, 19).replace('T', ' ')} UTC
      </p>
      ${standing(facts.leader)} ${sharedOut(facts.members)}
      <p>${summary(queues)}</p>
      <p class="dim">${facts.services.map(({ name, state }) => `${name} ${state}`).join(' · ')}</p>
      ${troubles(facts)} ${pandaPart(facts.panda, now)}
    </header>
    <main>
      <h2>Queues</h2>
      ${queue === undefined ? empty : html`<p><a href="/">All queues</a></p>`}
      ${shown.length === 0 ? html`<p>There is no queue here.</p>` : shown.map(queueCard)}
      <h2>Latest workers${of}</h2>
      ${workers.length === 0 ? html`<p>There are none yet.</p>` : workerList(workers, now)}
      <p class="dim">
        <a href="/api/openapi.json">API</a> · <a href="/metrics">metrics</a> · loaded again every 10 s
      </p>
    </main>`;
  return layout(`thresher: ${factoryId}`, body);
}

function standing(leader: LeaseHolder | undefined): Html {
  if (leader === undefined) return empty;
  return html`<p>This daemon is a standby: ${leader.holder} has the factory, since ${leader.since}.</p>`;
}

function sharedOut(members: readonly MemberView[]): Html {
  if (members.length === 0) return empty;
  const lines = members.map(
    ({ name, holder, state, queues, others }) =>
      html`<li class="${state === 'up' ? 'dim' : 'bad'}">
        ${name} (${holder}) ${state === 'up' ? 'has' : 'is gone and had'}
        ${[...others, ...queues.toSorted()].join(', ') || 'nothing'}
      </li>`,
  );
  return html`<ul class="why">
    ${lines}
  </ul>`;
}

function summary(queues: readonly QueueView[]): string {
  const count = (which: (status: (typeof workerStatuses)[number]) => boolean) =>
    queues.reduce(
      (sum, { counts }) =>
        workerStatuses.filter(which).reduce((total, status) => total + (counts[status] ?? 0), sum),
      0,
    );
  const alive = count((status) => !isFinal(status));
  const running = count((status) => status === 'running');
  return `${plural(queues.length, 'queue')} · ${plural(alive, 'worker')} alive, ${running} of them running`;
}

function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** The facts of the whole daemon. */
function troubles({ stuck, services, orphans }: FactoryFacts): Html {
  const failing = services.filter(({ state, reason }) => state === 'failing' || reason !== undefined);
  if (stuck.length + failing.length + orphans === 0) return empty;
  const lines = stuck.map(
    ({ loop, seconds }) => html`<li class="bad">${loop} has made no progress for ${seconds} s</li>`,
  );
  const why = failing.map(
    ({ name, state, reason }) =>
      html`<li class="${state === 'failing' ? 'bad' : 'warn'}">
        ${name}: ${reason?.message ?? 'it fails'} <code class="dim">${reason?.code ?? ''}</code>
      </li>`,
  );
  const found =
    orphans === 0
      ? empty
      : html`<li class="warn">
          ${plural(orphans, 'object')} with our mark belong${orphans === 1 ? 's' : ''} to no worker: see
          <code>thresher orphans</code>
        </li>`;
  return html`<ul class="why">
    ${lines}${why}${found}
  </ul>`;
}

function queueCard({ name, state, counts, limits, reasons }: QueueView): Html {
  const numbers = workerStatuses.flatMap((status) =>
    counts[status] === undefined
      ? []
      : [html`<li class="${statusClass(status)}"><b>${counts[status]}</b> ${status}</li>`],
  );
  const set = Object.entries(limits).flatMap(([limit, value]) =>
    // 0 new workers per cycle is no limit at all.
    value === null || (limit === 'maxNewWorkersPerCycle' && value === 0) ? [] : [`${limit} ${value}`],
  );
  return html`<section class="card">
    <div class="head">
      <h3><a href="/?queue=${encodeURIComponent(name)}">${name}</a></h3>
      <span class="state ${stateClass(state)}">${state}</span>
    </div>
    <ul class="counts">
      ${numbers.length === 0 ? html`<li class="dim">no workers yet</li>` : numbers}
    </ul>
    ${set.length === 0 ? empty : html`<p class="dim">${set.join(' · ')}</p>`} ${whyNoMore(reasons)}
  </section> `;
}

function whyNoMore(reasons: readonly Reason[]): Html {
  if (reasons.length === 0) return html`<p class="good">Nothing holds back more workers.</p>`;
  return html`<ul class="why">
    ${reasons.map(({ code, message }) => html`<li>${message} <code class="dim">${code}</code></li>`)}
  </ul>`;
}

function stateClass(state: string): string {
  switch (state) {
    case 'running':
      return 'good';
    case 'refused':
      return 'bad';
    default:
      return 'warn';
  }
}

function workerList(workers: readonly WorkerView[], now: number): Html {
  return html`<ol class="workers">
    ${workers.map((worker) => workerLine(worker, now))}
  </ol>`;
}

function workerLine(worker: WorkerView, now: number): Html {
  const { workerID, queueName, status, nodeID, computingElement, errorCode, diagMessage } = worker;
  const error =
    errorCode === null
      ? empty
      : html`<p class="${isBad(status) ? 'bad' : 'dim'}">${diagMessage ?? ''} <code>${errorCode}</code></p>`;
  return html`<li>
    <div class="head">
      <span><a href="/workers/${workerID}">${workerID}</a> <span class="dim">${queueName}</span></span>
      <span class="state ${statusClass(status)}">${status}</span>
    </div>
    <p class="dim">
      ${when(worker, now)}${nodeID === null ? empty : html` on ${nodeID}`}${computingElement === null ? empty : html` at ${computingElement}`}
    </p>
    ${error}
  </li>`;
}

function isBad(status: string): boolean {
  return statusClass(status) === 'bad';
}

function when({ submitTime, startTime, endTime }: WorkerView, now: number): Html {
  if (endTime !== null) return html`ended ${ago(now, endTime)}`;
  if (startTime !== null) return html`started ${ago(now, startTime)}`;
  if (submitTime !== null) return html`submitted ${ago(now, submitTime)}`;
  return html`not submitted yet`;
}

/** The link to the PanDA server in a few lines; nothing where there is none. */
function pandaPart({ server, login, link, outbox }: PandaView, now: number): Html {
  if (server === null || link === null) return empty;
  const { harvesterId, starting, answered, failures } = link;
  const polled = answered['commands'];
  const asked = polled === undefined ? empty : html` · asked for commands ${ago(now, polled)}`;
  const begins = starting === null ? empty : html` · ${starting}`;
  const oldest = outbox?.oldest ?? null;
  const waiting =
    oldest === null
      ? html` · every change reported`
      : html` · ${outbox?.waiting ?? 0} changes not reported yet, the oldest ${ago(now, oldest)}`;
  const problem = login?.problem ?? null;
  const wrong = [
    ...(problem === null ? [] : [{ message: `its login: ${problem}`, code: 'panda-credentials' }]),
    ...failures.map(({ call, message, code }) => ({ message: `${call} fails: ${message}`, code })),
  ];
  const lines = wrong.map(
    ({ message, code }) =>
      html`<li class="bad">PanDA server: ${message} <code class="dim">${code}</code></li>`,
  );
  return html`<p class="dim">PanDA: ${harvesterId} at ${new URL(server).host}${begins}${asked}${waiting}</p>
    ${
      lines.length === 0
        ? empty
        : html`<ul class="why">
            ${lines}
          </ul>`
    }`;
}
