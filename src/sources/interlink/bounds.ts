/**
 * The bounds of all that interLink and the jobs send. The payload of a job has bounds of its own, which all backends share
 * (`payloadBounds`), and so has a request at the door of a source (`longestSourceBody`): a longer report comes back with its job.
 */
export const bounds = {
  /** Bytes of a request. Kubernetes takes at most 3 MiB in one, and base64 makes ConfigMaps and Secrets longer. */
  bodyBytes: 16 * 1024 * 1024,
  /** Bytes of a /status, which is read as it comes: an older virtual kubelet asks for all Pods at once. One Pod, and what is read of those before it, have `bodyBytes`. */
  statusBytes: 256 * 1024 * 1024,
  /** Bytes of all bodies that are on their way, or are looked at. The next ones wait until there is room for them. */
  bodiesBytes: 64 * 1024 * 1024,
  /** A shorter body waits for no room. */
  smallBodyBytes: 64 * 1024,
  /** Bytes of the bodies of Pods that wait for jobs, in memory; those of further ones lie in their files. As many are planned at once. */
  waitingBytes: 128 * 1024 * 1024,
  /** Commas between the values of a request, and as many beginnings of lists and objects; of a /status, the values that are read of it: 10,000 Pods have half as many. Each value may be a mistake, which costs memory. */
  bodyValues: 250_000,
  /** The same of a /create, which has one Pod with its ConfigMaps and Secrets, and of a /delete. To check and to copy each takes its time. */
  podValues: 30_000,
  /** Bytes outside of texts in a request that is read as a whole: there may be blanks and digits without end, and nothing else runs while they are looked at. */
  bodyBesides: 4 * 1024 * 1024,
  /** Objects and lists within each other. A Pod has 15. */
  bodyDepth: 100,
  /** Pods that one /status may ask for. A node of Kubernetes has some hundreds of them, and a virtual one has some thousands. */
  statusPods: 10_000,
  /** Containers of a Pod that thresher does not know, each with a state of its own in the answer. One that it knows has no more either. */
  statusContainers: 1000,
  /** Warnings of a Pod that are told, and characters of each: a Pod may give a reason for as many as it has words. */
  podWarnings: 20,
  warning: 1000,
  /** Characters of all messages in the report of a Pod, as in Kubernetes. */
  podMessages: 12 * 1024,
  /** Characters of all messages of containers in one answer to /status: of each Pod as many as of each other. */
  statusMessages: 8 * 1024 * 1024,
  /** Bytes of all headers of a request. */
  headerBytes: 16 * 1024,
  /** interLink holds one for each /create that waits for its job. One more is closed without an answer, and its Pod fails. */
  connections: 4000,
  /** Each holds a connection and a file. */
  followedLogs: 1000,
  /** Characters of an answer that is no success: it becomes the message of a Pod. */
  sentence: 2000,
  /** Bytes of the report of a job: a job of a stranger may leave any. */
  reportBytes: 256 * 1024,
} as const;
