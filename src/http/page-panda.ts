import type { PandaView } from '../daemon/panda-view.ts';
import { empty, html, type Html } from './html.ts';
import { ago } from './page-layout.ts';

/** The link to the PanDA server in a few lines; nothing where there is none. */
export function pandaPart({ server, login, link, outbox }: PandaView, now: number): Html {
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
