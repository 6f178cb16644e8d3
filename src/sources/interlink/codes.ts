import type { Table } from '../../codes/codes.ts';
import type { Explanation } from '../../codes/explanation.ts';

/** Codes of the sidecar for interLink. */
export const interlinkErrors = {
  'interlink-files': {
    meaning: 'The sidecar for interLink cannot read or write its files below `dataRoot`.',
    remedy: 'See the message: mostly a full disk, or a directory that belongs to another user.',
  },
  'interlink-lost': {
    meaning:
      'Jobs of Pods live, and `dataRoot` of the sidecar for interLink has no file of any Pod. It ends no job and answers nothing, since the directory is probably not mounted.',
    remedy:
      'Mount or restore `dataRoot`: the sidecar looks again by itself. If the files are lost for good, end the jobs with `thresher kill`.',
  },
  'interlink-missing': {
    meaning:
      'Jobs of several Pods live, and `dataRoot` of the sidecar for interLink lacks the files of these Pods: it is probably an older copy. It ends none of these jobs, answers 500 for their states, and goes on with all other Pods.',
    remedy:
      'Restore the newest `dataRoot`, and restart the daemon. If the files are lost for good, the jobs run to their ends; a /delete, or `thresher kill`, ends them.',
  },
  'interlink-job-lost': {
    meaning:
      'The files of a Pod of interLink tell of a job, and the database knows none: it was lost, or restored to an earlier state, and the job has ended meanwhile. The Pod does not run again: it ends as the report of its job says, and with 137 where that says nothing.',
    remedy: 'None needed after a loss or restore of the database: have Kubernetes make a new Pod.',
  },
  'interlink-listen': {
    meaning: 'The sidecar for interLink cannot listen at the address that its options name.',
    remedy: 'See the message: choose another port or socket, or end the program that has it.',
  },
  'interlink-open': {
    meaning:
      'The sidecar for interLink would listen where other machines reach it, and interLink sends it no token: each of them could run jobs as the user of the daemon.',
    remedy:
      'Listen on 127.0.0.1 or on a unix socket. If a proxy or a firewall lets interLink alone in, say so with `othersMayReachIt: true`, or `--others-may-reach-it`.',
  },
  'interlink-capabilities': {
    meaning:
      'An option of `runtimeOptions` gives the containers of Pods capabilities, such as `--fakeroot`: they can write what they mount for reading, and of what one container mounts no other one of its Pod can mount a part.',
    remedy:
      'Keep it if Pods need root in their images, and read "What keeps users apart" in SECURITY.md; else take it out.',
  },
  'interlink-queue': {
    meaning: 'No queue, or more than one, takes the Pods of interLink.',
    remedy: 'Set `queue` of `sources.interlink` to a queue with `"demand": "interlink"`.',
  },
  'interlink-memory': {
    meaning:
      'Pods of interLink wait until others have their jobs: the ConfigMaps and Secrets of all that wait would take more memory than they may.',
    remedy: 'Nothing, if the others get their jobs soon. See why those wait: `thresher why` of their queue.',
  },
  'interlink-unread': {
    meaning:
      'interLink asked for the states of Pods, and the question was refused before it was read, or broke off: which Pods it named is not known. Their states stay in Kubernetes as they are, and no job is ended as one whose Pod interLink asks for no more.',
    remedy:
      'See the message. An older virtual kubelet asks for all Pods at once: delete the Pods that are too large, or use a newer one, which asks for each. Something else that asks /status may also have sent it.',
  },
  'interlink-report': {
    meaning:
      'thresher refused the report of a job of interLink: it is no report, or has no token of its Pod.',
    remedy:
      'See the message. Nothing is to be done where a stranger sent it; if all reports are refused, the key of the tokens has changed.',
  },
  'interlink-config': {
    meaning: 'A `SidecarConfig.yaml` cannot be read, or one of its keys has a wrong form.',
    remedy: 'See the message, which names the key.',
  },
} satisfies Record<string, Explanation>;

declare module '../../codes/codes.ts' {
  interface Codes extends Table<typeof interlinkErrors> {}
}
