const kilobyte = 1024;
const megabyte = 1024 * kilobyte;

interface Kind {
  /** Name of such a file in messages. */
  readonly called: string;
  /** Bytes. */
  readonly largest: number;
}

const kind = (called: string, largest: number): Kind => ({ called, largest });

/**
 * thresher reads files of operators, sites' tools and renewers of credentials as a whole, and such a file may be a disk
 * image or a log by mistake. Each bound is far above the largest honest file, and small enough to read and parse within
 * a second.
 */
export const fileKinds = {
  // A production panda_harvester.cfg has 30 kB.
  settings: kind('settings', 4 * megabyte),
  // 240 production queues have 500 kB; CRIC knows some thousand.
  queues: kind('queue file', 16 * megabyte),
  // The queues of ATLAS in CRIC have 10 MB.
  cached: kind('fetched file', 64 * megabyte),
  // The API server takes no object above 1.5 MB, and no submit description is a tenth of that.
  template: kind('template', megabyte),
  // Some have hundreds of clusters, with certificates within.
  kubeconfig: kind('kubeconfig', 4 * megabyte),
  // All authorities of the web and of the grid together have 1 MB.
  certificate: kind('certificate or key', 4 * megabyte),
  // A longer token fits into no header of a request: Node and most servers take 16 kB of all of them.
  token: kind('token', 16 * kilobyte),
  // A line, as every request has to bring it.
  httpToken: kind('token', 4 * kilobyte),
  // A Secret holds a megabyte, as base64.
  proxy: kind('proxy', 512 * kilobyte),
  // Schedds, credentials to keep: lists that people write.
  options: kind('list of options', 4 * megabyte),
  // A plugin may be bundled with all its dependencies.
  module: kind('plugin module', 32 * megabyte),
  // A whole payload has no more than this.
  payload: kind('file for a worker', megabyte),
  // Thresher's own notes on a cluster.
  pin: kind('note on a cluster', 64 * kilobyte),
} as const satisfies Readonly<Record<string, Kind>>;

export type FileKind = keyof typeof fileKinds;
