import type { ControlPlane } from '../../test/support/kubernetes.ts';

/** By verb and resource, as the API server counts them: "LIST pods". */
export type RequestCounts = Readonly<Record<string, number>>;

/** Requests for Jobs and Pods since the API server started, whoever sent them; of watches, those that ended. */
export async function objectRequests({ client }: ControlPlane): Promise<RequestCounts> {
  const { text } = await client.raw('GET', '/metrics');
  const counts: Record<string, number> = {};
  for (const [, labels = '', value = '0'] of text.matchAll(/^apiserver_request_total\{(.*)\} (\S+)$/gm)) {
    const label = (name: string) => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
    const [verb, resource] = [label('verb'), label('resource')];
    if (resource !== 'pods' && resource !== 'jobs') continue;
    const key = `${verb} ${resource}`;
    counts[key] = (counts[key] ?? 0) + Number(value);
  }
  return counts;
}

/** The requests that were added. */
export function requestsBetween(before: RequestCounts, after: RequestCounts): RequestCounts {
  return Object.fromEntries(
    Object.entries(after)
      .map(([key, count]) => [key, count - (before[key] ?? 0)] as const)
      .filter(([, count]) => count > 0),
  );
}
