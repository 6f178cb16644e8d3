/** What a pool's configuration is made of. */
export interface PoolSettings {
  /** Where HTCondor is unpacked. */
  readonly programs: string;
  /** Its logs, spools and keys. */
  readonly directory: string;
  readonly port: number;
  /** "1000.1000": whose the daemons and the jobs are. */
  readonly ids: string;
  readonly owner: string;
  /** Lines of a test's own, which count last. */
  readonly more: readonly string[];
}

export const domain = 'pool.test';
/** The schedd that is reached by its name and a token only. */
export const remoteSchedd = `remote@${domain}`;
export const localSchedd = `local@${domain}`;
/** Pretended, so that two hundred pilots run at once on any machine. */
const cores = 256;

/** One machine that is a whole pool, all of it behind one port on loopback. */
export function poolConfiguration(settings: PoolSettings): string {
  const { programs, directory, port, ids, owner, more } = settings;
  return `${[
    `RELEASE_DIR = ${programs}/usr`,
    `LOCAL_DIR = ${directory}`,
    ...['BIN = $(RELEASE_DIR)/bin', 'SBIN = $(RELEASE_DIR)/sbin', 'LIB = $(RELEASE_DIR)/lib/condor'],
    ...[
      'LIBEXEC = $(RELEASE_DIR)/libexec/condor',
      'SHARE = $(RELEASE_DIR)/share/condor',
      'ETC = $(LOCAL_DIR)',
    ],
    ...['LOG', 'SPOOL', 'EXECUTE', 'LOCK', 'RUN'].map(
      (name) => `${name} = $(LOCAL_DIR)/${name.toLowerCase()}`,
    ),
    ...['LOCAL_CONFIG_DIR =', 'REQUIRE_LOCAL_CONFIG_FILE = False', `CONDOR_IDS = ${ids}`],
    '',
    'DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD REMOTE STARTD',
    ...['CONDOR_HOST = 127.0.0.1', `COLLECTOR_HOST = 127.0.0.1:${port}`, 'COLLECTOR_NAME = pool of tests'],
    ...['USE_SHARED_PORT = True', `SHARED_PORT_PORT = ${port}`, 'DAEMON_SOCKET_DIR = auto'],
    ...['NETWORK_INTERFACE = 127.0.0.1', 'BIND_ALL_INTERFACES = False', 'ENABLE_IPV6 = False'],
    ...[`UID_DOMAIN = ${domain}`, `FILESYSTEM_DOMAIN = ${domain}`, 'TRUST_UID_DOMAIN = True'],
    `SCHEDD_NAME = ${localSchedd}`,
    '',
    '# The second schedd is no less real: but it is not the one that tools find without a name.',
    ...['REMOTE = $(SCHEDD)', 'REMOTE_ARGS = -local-name REMOTE', 'REMOTE_LOG = $(LOG)/RemoteLog'],
    ...[`REMOTE.SCHEDD_NAME = ${remoteSchedd}`, 'REMOTE.SCHEDD_LOG = $(LOG)/RemoteLog'],
    ...[
      'REMOTE.SPOOL = $(LOCAL_DIR)/spool-remote',
      'REMOTE.SCHEDD_ADDRESS_FILE = $(LOCAL_DIR)/spool-remote/.schedd_address',
    ],
    'REMOTE.SCHEDD_DAEMON_AD_FILE = $(LOCAL_DIR)/spool-remote/.schedd_classad',
    'REMOTE.HISTORY = $(LOCAL_DIR)/spool-remote/history',
    'REMOTE.SEC_DEFAULT_AUTHENTICATION_METHODS = IDTOKENS',
    // Without it the master takes it for a program it knows nothing of, and tells it nothing.
    'DC_DAEMON_LIST = +REMOTE',
    '',
    `TRUST_DOMAIN = ${domain}`,
    ...['SEC_DEFAULT_AUTHENTICATION = REQUIRED', 'SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS'],
    ...['SEC_DEFAULT_ENCRYPTION = OPTIONAL', 'SEC_DEFAULT_INTEGRITY = REQUIRED'],
    'SEC_CLIENT_AUTHENTICATION_METHODS = $(SEC_DEFAULT_AUTHENTICATION_METHODS)',
    ...[
      'SEC_PASSWORD_DIRECTORY = $(LOCAL_DIR)/keys',
      'SEC_TOKEN_POOL_SIGNING_KEY_FILE = $(LOCAL_DIR)/keys/POOL',
    ],
    'SEC_TOKEN_SYSTEM_DIRECTORY = $(LOCAL_DIR)/tokens',
    ...['ALLOW_READ = *', 'ALLOW_WRITE = *', `ALLOW_DAEMON = condor@*, ${owner}@*, condor_pool@*`],
    ...[`ALLOW_NEGOTIATOR = condor@*, ${owner}@*`, `ALLOW_ADMINISTRATOR = condor@*, ${owner}@*, root@*`],
    `QUEUE_SUPER_USERS = condor, ${owner}`,
    '',
    ...[`NUM_CPUS = ${cores}`, 'MEMORY = 1048576', 'NUM_SLOTS_TYPE_1 = 1', 'SLOT_TYPE_1 = 100%'],
    ...['SLOT_TYPE_1_PARTITIONABLE = True', 'START = True', 'PREEMPT = False', 'KILL = False', 'RANK = 0'],
    ...['SUSPEND = False', 'CONTINUE = True', 'WANT_SUSPEND = False', 'WANT_VACATE = False'],
    ...['NEGOTIATOR_CONSIDER_PREEMPTION = False', 'RUNBENCHMARKS = 0', 'MAIL = /bin/true'],
    // As root the master would change settings of the machine.
    ...[
      'ENABLE_KERNEL_TUNING = False',
      'DISCARD_SESSION_KEYRING_ON_STARTUP = False',
      'USE_PID_NAMESPACES = False',
    ],
    ...['MOUNT_UNDER_SCRATCH =', 'BASE_CGROUP =', 'SINGULARITY = /nonexistent'],
    ...['JOB_DEFAULT_REQUESTMEMORY = 128', 'JOB_DEFAULT_REQUESTDISK = 1024', 'JOB_DEFAULT_REQUESTCPUS = 1'],
    '',
    '# What takes minutes elsewhere takes seconds here.',
    ...['NEGOTIATOR_INTERVAL = 2', 'NEGOTIATOR_MIN_INTERVAL = 1', 'NEGOTIATOR_CYCLE_DELAY = 1'],
    ...['SCHEDD_INTERVAL = 2', 'SCHEDD_MIN_INTERVAL = 1', 'NEGOTIATOR_UPDATE_INTERVAL = 5'],
    ...[
      'STARTER_UPDATE_INTERVAL = 2',
      'STARTER_INITIAL_UPDATE_INTERVAL = 1',
      'SHADOW_QUEUE_UPDATE_INTERVAL = 2',
    ],
    ...['UPDATE_INTERVAL = 5', 'MASTER_UPDATE_INTERVAL = 5', 'POLLING_INTERVAL = 1', 'CLAIM_WORKLIFE = 3600'],
    ...['JOB_START_COUNT = 200', 'JOB_START_DELAY = 0', 'MAX_JOBS_RUNNING = 2000'],
    ...[
      'PERIODIC_EXPR_INTERVAL = 2',
      'MAX_PERIODIC_EXPR_INTERVAL = 5',
      'MASTER_BACKOFF_CONSTANT = 1',
      'MASTER_BACKOFF_CEILING = 10',
    ],
    ...['SHUTDOWN_FAST_TIMEOUT = 10', 'SHUTDOWN_GRACEFUL_TIMEOUT = 10'],
    '',
    ...['EVENT_LOG = $(LOG)/EventLog', 'EVENT_LOG_FORMAT_OPTIONS = JSON, UTC, SUB_SECOND'],
    ...['EVENT_LOG_MAX_SIZE = 100000000', 'HISTORY = $(SPOOL)/history'],
    ...more,
  ].join('\n')}\n`;
}

/**
 * What users of the pool have as CONDOR_CONFIG.
 * @param kind the local one finds its schedd without a name; the remote one knows neither schedd nor pool.
 */
export function clientConfiguration(kind: 'local' | 'remote', settings: PoolSettings): string {
  const { programs, directory, ids } = settings;
  const tokens = 'SEC_CLIENT_AUTHENTICATION_METHODS = IDTOKENS';
  // Whoever the tests run as, jobs are those of the token: root may not submit as itself.
  if (kind === 'local') {
    // Who can read the key of the pool would be its own issuer. Nothing writes to this directory: HTCondor takes each file there for a
    // key, and refuses one that others can read, as the `known_hosts` is that it makes in LOCAL_DIR.
    const keys = ['SEC_TOKEN_POOL_SIGNING_KEY_FILE =', `SEC_PASSWORD_DIRECTORY = ${directory}/no-keys`];
    return `${[`include : ${directory}/condor_config`, tokens, ...keys].join('\n')}\n`;
  }
  return `${[
    ...[
      `RELEASE_DIR = ${programs}/usr`,
      `LOCAL_DIR = ${directory}/remote`,
      'LOG = $(LOCAL_DIR)',
      'SPOOL = $(LOCAL_DIR)',
    ],
    ...['BIN = $(RELEASE_DIR)/bin', 'LIBEXEC = $(RELEASE_DIR)/libexec/condor', 'CONDOR_HOST ='],
    ...['COLLECTOR_HOST =', 'LOCAL_CONFIG_DIR =', 'REQUIRE_LOCAL_CONFIG_FILE = False'],
    ...['NETWORK_INTERFACE = 127.0.0.1', 'ENABLE_IPV6 = False', 'UID_DOMAIN = elsewhere.test'],
    // Tools of root ask for it, though they need it for nothing.
    `CONDOR_IDS = ${ids}`,
    ...['FILESYSTEM_DOMAIN = elsewhere.test', `TRUST_DOMAIN = ${domain}`, 'SEC_DEFAULT_INTEGRITY = REQUIRED'],
    tokens,
  ].join('\n')}\n`;
}
