/**
 * Whether a version is older than another. Kubernetes 1.35 and later document a `resourceVersion` as an integer that grows;
 * of versions that are no integers of 64 bits none is older. Source: "Resource versions" of the Kubernetes API concepts.
 */
export function isOlder(version: string | undefined, than: string | undefined): boolean {
  if (!isInteger(version) || !isInteger(than)) return false;
  return BigInt(version) < BigInt(than);
}

function isInteger(version: string | undefined): version is string {
  return version !== undefined && /^\d{1,20}$/.test(version);
}
