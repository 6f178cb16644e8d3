import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Pool } from './htcondor.ts';

/** Names of startds of the tests by worker id: `slot1@w12@HOST`. */
export const startdName = (workerId: number): string => `w${workerId}`;

export interface StartdWorkerOptions {
  /** Seconds without a claim after which it ends. */
  readonly noClaim: number;
  /** Seconds that a running job may go on after an order to drain. Default: 30 days. */
  readonly retirement?: number;
  /** Lines of configuration that count last. */
  readonly more?: readonly string[];
  /** Shell commands before the startd. */
  readonly before?: string;
}

/**
 * The template of a local worker that is a startd of a pool: 0.1 s of CPU each, without a master.
 * Its machine is as big as `nCore` and `minRamCount` of the worker say.
 */
export function startdTemplate(
  pool: Pool,
  directory: string,
  options: StartdWorkerOptions,
): Record<string, unknown> {
  const { noClaim, retirement = 30 * 86_400, more = [], before = ':' } = options;
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o755);
  chownSync(directory, pool.uid, pool.gid);
  const programs = join(pool.programs, '..');
  const lines = [
    `include : ${pool.directory}/condor_config`,
    ...[
      'LOCAL_DIR = $dir',
      'LOG = $dir',
      'EXECUTE = $dir/execute',
      'LOCK = $dir',
      'RUN = $dir',
      'SPOOL = $dir',
    ],
    ...['DAEMON_LIST = STARTD', 'STARTD_NAME = w$HARVESTER_WORKER_ID', 'USE_SHARED_PORT = False'],
    ...['NUM_CPUS = $nCore', 'MEMORY = $minRamCount', 'START = True'],
    // Without the key of the pool no token is good for an order to this startd.
    `SEC_PASSWORD_DIRECTORY = ${pool.directory}/keys`,
    `SEC_TOKEN_POOL_SIGNING_KEY_FILE = ${pool.directory}/keys/POOL`,
    `STARTD_NOCLAIM_SHUTDOWN = ${noClaim}`,
    `MAXJOBRETIREMENTTIME = ${retirement}`,
    'ThresherFactory = "$THRESHER_FACTORY"',
    'ThresherWorker = $HARVESTER_WORKER_ID',
    'ThresherQueue = "$pandaQueueName"',
    'ThresherShape = "$POOL_SHAPE"',
    'STARTD_ATTRS = \\$(STARTD_ATTRS) ThresherFactory ThresherWorker ThresherQueue ThresherShape',
    // A startd without a master has nobody to share a session with.
    ...['SEC_USE_FAMILY_SESSION = False', 'USE_PROCD = False', 'UPDATE_INTERVAL = 2', 'POLLING_INTERVAL = 1'],
    // Looking for what no job here needs costs more than the rest of the start.
    ...[
      'FILETRANSFER_PLUGINS =',
      'ENABLE_URL_TRANSFERS = False',
      'JAVA =',
      'DOCKER =',
      'BENCHMARKS_JOBLIST =',
    ],
    ...more,
  ];
  const dir = `${directory}/$HARVESTER_WORKER_ID`;
  const as =
    process.getuid?.() === 0 ? `setpriv --reuid ${pool.uid} --regid ${pool.gid} --clear-groups ` : '';
  const script = [
    `dir="${dir}"`,
    before,
    'mkdir -p "$dir/execute"',
    `cat >"$dir/config" <<END\n${lines.join('\n')}\nEND`,
    process.getuid?.() === 0 ? `chown -R ${pool.uid}:${pool.gid} "$dir"` : ':',
    'mark="THRESHER_WORKER_DIR=$THRESHER_WORKER_DIR"',
    `${as}env -i "$mark" PATH=/usr/bin:/bin CONDOR_CONFIG="$dir/config" ${programs}/sbin/condor_startd -f`,
    'status=$?',
    // A startd that was drained ends with 99, so that no master starts it again.
    '[ "$status" != 99 ] || status=0',
    'echo "the startd ended with $status"; exit "$status"',
  ];
  return { command: '/bin/sh', args: ['-c', script.join('\n')], cpu: 0, memory: 0 };
}
