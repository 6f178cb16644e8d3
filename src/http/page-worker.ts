import type { workerDetails } from '../daemon/view.ts';
import type { Reason } from '../worker/reason.ts';
import { empty, html, type Html } from './html.ts';
import { ago, layout, statusClass } from './page-layout.ts';

/** The end of a log, or why it cannot be shown. */
export type ShownLog = { readonly text: string; readonly cut: boolean } | { readonly failure: Reason };

export interface WorkerFacts {
  readonly now: number;
  readonly details: Awaited<ReturnType<typeof workerDetails>>;
  readonly stdout: ShownLog;
  readonly stderr: ShownLog;
}

/** All facts of one worker, as `thresher worker` and `thresher logs` show them. */
export function workerPage({ now, details, stdout, stderr }: WorkerFacts): Html {
  const { history, workerID, queueName, status, errorCode, diagMessage, ...others } = details;
  const facts = Object.entries(others).filter(([, value]) => value !== null);
  const error =
    errorCode === null ? empty : html`<p class="bad">${diagMessage ?? ''} <code>${errorCode}</code></p>`;
  const body = html`<header>
      <p><a href="/">All queues</a> · <a href="/?queue=${encodeURIComponent(queueName)}">${queueName}</a></p>
      <div class="head">
        <h1>Worker ${workerID}</h1>
        <span class="state ${statusClass(status)}">${status}</span>
      </div>
      ${error}
    </header>
    <main>
      <h2>Standard output</h2>
      ${logEnd(stdout, workerID, 'stdout')}
      <h2>Standard error</h2>
      ${logEnd(stderr, workerID, 'stderr')}
      <h2>History</h2>
      <ol class="workers">
        ${history.map((step) => historyLine(step, now))}
      </ol>
      <h2>Facts</h2>
      <dl>
        ${facts.map(
          ([name, value]) =>
            html`<dt>${name}</dt>
              <dd>${text(value)}</dd>`,
        )}
      </dl>
      <p class="dim"><a href="/api/workers/${workerID}">as JSON</a> · loaded again every 10 s</p>
    </main>`;
  return layout(`worker ${workerID} ${status}`, body);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function historyLine(step: WorkerFacts['details']['history'][number], now: number): Html {
  const { time, from, to, source, nativeStatus, message } = step;
  const native = nativeStatus === null || nativeStatus === to ? empty : html` (${nativeStatus})`;
  return html`<li>
    <div class="head">
      <span>
        ${from === null ? empty : html`${from} → `}<span class="state ${statusClass(to)}">${to}</span
        >${native}
      </span>
      <span class="dim">${source}, ${ago(now, time)}</span>
    </div>
    ${message === null ? empty : html`<p class="dim">${message}</p>`}
  </li>`;
}

function logEnd(log: ShownLog, workerID: number, stream: string): Html {
  if ('failure' in log) {
    const { code, message } = log.failure;
    return html`<p class="dim">${message} <code>${code}</code></p>`;
  }
  const more = html`<p class="dim">
    ${log.cut ? 'Cut for its size. ' : empty}<a
      href="/api/workers/${workerID}/log?stream=${stream}&amp;tail=10000"
      >more of it</a
    >
  </p>`;
  return log.text === ''
    ? html`<p class="dim">Empty.</p>`
    : html`<pre>${log.text}</pre>
        ${more}`;
}
