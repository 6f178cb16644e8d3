/** Which word of a `grid_resource` names the computing element, by its first word. Source: HTCondor's manual, "The Grid Universe". */
const endpointAt: Readonly<Record<string, number>> = {
  // condor SCHEDD POOL
  condor: 2,
  // arc URL, or a bare host
  arc: 1,
  // batch SYSTEM USER@HOST
  batch: 2,
};

/** The endpoint "host:port" of the computing element of a grid job; undefined where the resource is none, or not named. */
export function gridEndpoint(resource: string | undefined): string | undefined {
  const words = resource?.trim().split(/\s+/) ?? [];
  const word = words[endpointAt[words[0]?.toLowerCase() ?? ''] ?? Infinity];
  return word === undefined ? undefined : bareEndpoint(word);
}

/** The part of an outcome or observation that names the computing element: empty where there is none. */
export function elementOf(ce: string | undefined): { readonly computingElement?: string } {
  // A queue may give its `ceEndpoint` as a URL. Throttling rules compare host:port exactly.
  const computingElement = ce === undefined ? undefined : bareEndpoint(ce);
  return computingElement === undefined ? {} : { computingElement };
}

/** An endpoint without its scheme, path and user; undefined where nothing is left. */
function bareEndpoint(text: string): string | undefined {
  const endpoint = text
    .replace(/^\w+:\/\//, '')
    .replace(/\/.*/s, '')
    .replace(/^.*@/, '');
  return endpoint === '' ? undefined : endpoint;
}
