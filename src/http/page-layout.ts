import { isoTime } from '../util/clock.ts';
import type { Reason } from '../worker/reason.ts';
import { empty, html, type Html } from './html.ts';

/** Between two loads of a page, s. */
const refresh = 10;

/** One column, large enough for a thumb; colours of at least 4.5:1 on their ground, light and dark. */
const css = `
:root { color-scheme: light dark; --ground: #fff; --card: #f4f5f7; --text: #1b1f24; --dim: #57606a;
  --line: #d0d7de; --link: #0550ae; --good: #116329; --warn: #7a4b00; --bad: #a40e26; }
@media (prefers-color-scheme: dark) { :root { --ground: #0d1117; --card: #161b22; --text: #e6edf3;
  --dim: #9da7b3; --line: #30363d; --link: #79c0ff; --good: #56d364; --warn: #e3b341; --bad: #ff9790; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 0.75rem; max-width: 60rem; background: var(--ground); color: var(--text);
  font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere; -webkit-text-size-adjust: 100%; }
h1 { font-size: 1.35rem; margin: 0.25rem 0; } h2 { font-size: 1.1rem; margin: 1.5rem 0 0.5rem; }
h3 { font-size: 1rem; margin: 0; } p { margin: 0.25rem 0; } a { color: var(--link); }
.dim { color: var(--dim); font-size: 0.9rem; } .good { color: var(--good); } .warn { color: var(--warn); }
.bad { color: var(--bad); } code { font-size: 0.9em; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 0.5rem; margin: 0.5rem 0;
  padding: 0.6rem 0.75rem; }
.head { display: flex; gap: 0.75rem; justify-content: space-between; align-items: baseline; }
.head > :first-child { min-width: 0; }
.state { font-weight: 600; white-space: nowrap; }
.counts { display: flex; flex-wrap: wrap; gap: 0.1rem 1rem; margin: 0.25rem 0; padding: 0; list-style: none; }
.counts b { font-variant-numeric: tabular-nums; }
.why { margin: 0.25rem 0; padding-left: 1.1rem; } .why li { margin: 0.1rem 0; } .why code { white-space: nowrap; }
.workers { list-style: none; margin: 0; padding: 0; }
.workers li { border-top: 1px solid var(--line); padding: 0.45rem 0; }
.workers .head a { padding: 0.1rem 0; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: 0.15rem 1rem; margin: 0; }
dt { color: var(--dim); } dd { margin: 0; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 0.5rem; margin: 0.5rem 0;
  padding: 0.6rem; max-height: 30rem; overflow: auto; white-space: pre-wrap; font-size: 0.85rem; }
`;

/** A whole page. It loads nothing else and runs nothing. */
export function layout(title: string, body: Html, reload = true): Html {
  const again = reload ? html`<meta http-equiv="refresh" content="${refresh}" />` : empty;
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        ${again}
        <title>${title}</title>
        <style>
          ${{ html: css }}
        </style>
      </head>
      <body>
        ${body}
      </body>
    </html> `;
}

export function failurePage({ code, message }: Reason): Html {
  const body = html`<h1>This did not work</h1>
    <p class="card"><code class="bad">${code}</code><br />${message}</p>
    <p><a href="/">All queues</a></p>`;
  return layout(`thresher: ${code}`, body, false);
}

/** How long ago, as a person says it; the whole time is its title. */
export function ago(now: number, time: string | number | null): Html {
  if (time === null) return html`-`;
  const at = typeof time === 'number' ? time : Date.parse(time);
  return html`<time datetime="${isoTime(at)}" title="${isoTime(at)}">${duration(now - at)} ago</time>`;
}

/** "3 min", "5 h": the largest unit of which there is more than one and a half. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** The colour of a worker's status. */
export function statusClass(status: string): string {
  switch (status) {
    case 'running':
    case 'finished':
      return 'good';
    case 'failed':
    case 'missed':
      return 'bad';
    case 'cancelled':
      return 'warn';
    default:
      return 'plain';
  }
}
