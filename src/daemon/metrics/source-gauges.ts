import type { Source, SourceGauge } from '../../plugins/contracts/index.ts';

/** Series of one gauge that are shown: a source that bounds nothing must not fill Prometheus. */
const mostSeries = 1000;
const goodName = /^thresher_[a-z][a-z0-9_]*$/;
const goodLabel = /^[a-z][a-zA-Z0-9_]*$/;

/** The gauges of these sources. One that cannot say its own shows none, and spoils no scrape. */
export function gaugesOf(sources: readonly { readonly source: Pick<Source, 'gauges'> }[]): SourceGauge[] {
  return sources.flatMap(({ source }) => {
    try {
      return [...(source.gauges?.() ?? [])];
    } catch {
      return [];
    }
  });
}

/** Gauges in Prometheus' text format. A name that is taken already, or is none, is left out. */
export function gaugesText(gauges: readonly SourceGauge[], taken: ReadonlySet<string>): string {
  const seen = new Set(taken);
  return gauges
    .map(({ name, help, values }) => {
      if (!goodName.test(name) || seen.has(name)) return '';
      seen.add(name);
      const series = values
        .filter(({ value }) => Number.isFinite(value))
        .slice(0, mostSeries)
        .map(({ labels, value }) => `${name}${labelsText(labels)} ${value}\n`);
      return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} gauge\n${series.join('')}`;
    })
    .join('');
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  const parts = Object.entries(labels)
    .filter(([name]) => goodLabel.test(name))
    .map(([name, value]) => `${name}="${escaped(value)}"`);
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}

const escaped = (value: string) =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
