import { withoutOwn } from '../util/own-secrets.ts';

/** Text that is HTML already. Everything else is escaped when it is put into a page. */
export interface Html {
  readonly html: string;
}

type Part = Html | string | number | readonly Part[];

/** A piece of a page: what stands between is escaped, but for pieces made by this very function. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: String.raw({ raw: strings }, ...parts.map(render)) };
}

/** Nothing. */
export const empty: Html = { html: '' };

function render(part: Part): string {
  if (typeof part === 'string' || typeof part === 'number') return escape(String(part));
  return 'html' in part ? part.html : part.map(render).join('');
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Safe between tags and in quoted attributes. Control codes of terminals are left out: pilots colour their logs. */
function escape(text: string): string {
  const readable = text
    .replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '')
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '');
  // A secret of ours with control codes between its characters is one again without them.
  return (readable === text ? text : withoutOwn(readable)).replace(
    /[&<>"']/g,
    (character) => entities[character] ?? '',
  );
}
