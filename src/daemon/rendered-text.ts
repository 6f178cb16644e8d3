import { stringify } from 'yaml';
import { oneLine } from '../util/one-line.ts';
import { maskText, withoutSecrets } from '../util/secrets.ts';
import type { RenderedWorker } from './rendering.ts';

/** A worker in the form of its backend, with remarks before it and without secrets. */
export function renderedText(
  { worker, format, document, files, notes }: RenderedWorker,
  form: RenderedWorker['format'] = format,
): string {
  const { workerId, name, queue, placement } = worker;
  const remarks = [
    `worker ${workerId} of ${queue}, ${name}, for ${placement}`,
    ...files.map(({ role, path }) => `${role}: ${path}`),
    ...notes.map(maskText),
  ].map((remark) => `# ${oneLine(remark)}\n`);
  const shown = withoutSecrets('', document);
  const text = typeof shown === 'string' && form !== 'yaml' ? shown : yamlOf(shown);
  return `${remarks.join('')}${text.endsWith('\n') ? text : `${text}\n`}`;
}

/** YAML 1.1 puts all into quotes that any reader might take for something else: Kubernetes reads `yes` as true. */
function yamlOf(document: unknown): string {
  const shown = typeof document === 'string' ? { submit: document } : document;
  return stringify(shown, { version: '1.1', lineWidth: 0 });
}
