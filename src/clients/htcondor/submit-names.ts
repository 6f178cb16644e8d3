/** Commands or attributes that every third party may give to a job. */
export interface AllowedNames {
  readonly names: readonly string[];
  /** Why they reach nothing but that job. */
  readonly why: string;
}

/**
 * The commands that thresher hands on: what is not here is refused, also in an HTCondor that is newer than this list.
 * Source: condor_submit's manual and `submit_utils.h`, HTCondor 25.14.
 */
export const allowedCommands: readonly AllowedNames[] = [
  {
    names: [
      ...['request_cpus', 'request_memory', 'request_disk', 'request_gpus', 'require_gpus'],
      ...[
        'gpus_minimum_capability',
        'gpus_maximum_capability',
        'gpus_minimum_memory',
        'gpus_minimum_runtime',
      ],
      ...[
        'retry_request_memory',
        'retry_request_memory_increase',
        'retry_request_memory_max',
        'retry_request_disk',
      ],
    ],
    why: 'needs of the job, which the negotiator compares with machines',
  },
  {
    names: ['requirements', 'rank', 'concurrency_limits', 'concurrency_limits_expr'],
    why: 'which machines the job takes; the requirements of the queue count beside its own',
  },
  {
    names: ['priority', 'prio', 'nice_user', 'accounting_group', 'project_name', 'batch_name', 'description'],
    why: "its order and share among the jobs of the queue's user, and names for people",
  },
  {
    names: [
      ...[
        'allowed_job_duration',
        'allowed_execute_duration',
        'job_max_vacate_time',
        'max_job_retirement_time',
      ],
      ...['job_lease_duration', 'kill_sig', 'kill_sig_timeout'],
    ],
    why: 'how long it may run, and how it is ended',
  },
  {
    names: [
      ...['periodic_hold', 'periodic_hold_reason', 'periodic_hold_subcode', 'periodic_release'],
      ...['periodic_remove', 'periodic_vacate'],
    ],
    why: 'expressions over the ad of the job itself, which change its own state alone; all expressions have bounds (expression.ts)',
  },
];

/**
 * The attributes (`+NAME`, `MY.NAME`) that thresher hands on. `AccountingGroup` is none of them: it names group and user, and the schedd
 * believes it.
 */
export const allowedAttributes: readonly AllowedNames[] = [
  {
    names: ['MaxRuntime', 'MaxWallTime', 'MaxWallTimeMins', 'RequestRuntime', 'JobFlavour'],
    why: "run times, by which pools end jobs (CERN's batch service, DESY, HTCondor-CE)",
  },
  {
    names: ['ProjectName'],
    why: 'the project that is accounted for (OSG); the group is the command accounting_group, to which HTCondor adds the user',
  },
  {
    names: [
      'BigMemJob',
      'WantOS',
      'REQUIRED_OS',
      'DESIRED_Sites',
      'UNDESIRED_Sites',
      'DESIRED_Archs',
      'WantGlidein',
    ],
    why: "which machines or glideins of a pool take it (CERN's batch service, CMS, OSG)",
  },
];

/** A command or attribute that a third party may not give to a job. */
interface RefusedNames {
  readonly key: RegExp;
  readonly why: string;
}

/** Why commands are refused that thresher, the resource or the queue has a say of its own in. No administrator can allow them. */
const commandRefusals: readonly RefusedNames[] = [
  { key: /^queue$/, why: 'the number of jobs is the resource\'s own field "queue"' },
  {
    key: /^(executable|transfer_executable|copy_to_spool|arguments|args|interactive)$/,
    why: 'thresher writes which program runs: use the script of the resource',
  },
  {
    key: /^(environment|env|getenv|get_env|allow_environment|shell)$/,
    why: 'thresher writes the environment: use the field "env" of the resource',
  },
  {
    key: /^(transfer_\w+|should_transfer_files|when_to_transfer_output|preserve_relative_paths|public_input_files|encrypt_\w+|dont_encrypt_\w+|max_transfer_\w+|output_destination|append_files|file_remaps|fetch_files|buffer_\w+|skip_filechecks|manifest\w*|checkpoint_\w+|erase_output_and_error_on_restart)$/,
    why: 'thresher transfers the files of a job: a line of yours could read or write files of the access point',
  },
  {
    key: /^(input|output|error|in|out|err|stdin|stdout|stderr|log|log_xml|stream_\w+|initialdir|initial_dir|iwd|job_iwd|remote_initialdir|rootdir|ulog_\w+|dagman\w*)$/,
    why: 'thresher says where output and logs go',
  },
  {
    key: /^(universe|docker_\w+|container_\w+|singularity\w*|want_docker|want_container|image_size|vm_\w+|xen_\w+|kvm_\w+|java_\w+|jar_files|machine_count)$/,
    why: 'the image and the runtime of the resource say how it runs',
  },
  {
    key: /^(grid_\w+|batch_\w+|arc_\w+|ec2_\w+|gce_\w+|azure_\w+|nordugrid_\w+|globus_\w+|remote_\w+|keystore_\w+|delegate_\w+|cream_\w+|boinc_\w+)$/,
    why: 'the queue says to which site its jobs go',
  },
  {
    key: /^(x509\w*|use_x509userproxy|use_oauth_services|use_scitokens|scitokens_\w+|myproxy\w*|run_as_owner|load_profile|credential\w*|send_credential|nt_domain|\w+_oauth_\w+|kerberos\w*)$/,
    why: 'the queue has the credentials of its jobs; name Secrets in the resource',
  },
  {
    key: /^(max_retries|retry_until|success_exit_code|on_exit_(hold|remove)\w*|next_job_start_delay)$/,
    why: 'thresher counts and repeats jobs: use the field "backoffLimit" of the resource',
  },
  {
    key: /^(max_materialize|max_idle|hold|leave_in_queue|noop_job\w*|cron_\w+|deferral_\w+|job_machine_attrs\w*|hook_keyword)$/,
    why: 'thresher follows each job from its submission to its end',
  },
  {
    key: /^(accounting_group_user|notify_user|notification|email_attributes)$/,
    why: 'the queue says whose jobs they are',
  },
  {
    key: /^(include|use|if|elif|else|endif|error|warning)$/,
    why: 'this is no command of a job but a statement of the file',
  },
];

/** What an attribute does that HTCondor itself reads: why it is refused, and what an administrator who allows it has to know. */
const attributeRefusals: readonly RefusedNames[] = [
  { key: /^(thresher|harvester)/, why: 'names that begin so are for the factory' },
  {
    key: /^otherjob/,
    why: 'by it the end of one job removes other jobs of the schedd, whosever they are',
  },
  {
    key: /^(wantio_?proxy|chirp|common|transferthese|requestedcatalogs|mountunder|filere?maps|(append|buffer|compress|fetch|local|save|failure)_?files?|jobstarter|starter|shadow|parallelscript|datareuse|keystore|jarfiles|boinc)/,
    why: 'by it a job could read or write files of the access point',
  },
  {
    key: /^(args|arguments|cmd|(orig)?iwd|origcmd|in$|out(size)?$|err(size)?$|env(delim)?$|environment|userlog|writeuserlog|dagman|transfer|spool|stage|stream|shouldtransfer|whento|publicinput|outputdestination|encrypt|dontencrypt|preserve|checkpoint|pre(cmd|arg|env)|post(cmd|arg|env)|manifest|ulog|emailattributes|rootdir|requestedchroot|filesystem|executable|input$|output$|error$|log$)/,
    why: 'HTCondor takes program, files and places of a job from it',
  },
  {
    key: /^(jobuniverse|want(docker|container|singularity|sif|sandboximage|remote|delayedupdates|checkpoint|parallel|claiming|resad)|parallel|container|docker|singularity|java|vm|jobvm|grid|remote|ec2|gce|azure|arc(rte|resources|application|datastaging)|hook|jobadinformation|tooldaemon|suspendjob|dropjobad|useparrot|(min|max)hosts|machinecount)/,
    why: 'HTCondor takes from it how and where a job runs',
  },
  {
    key: /^(owner|user$|osuser|uid|gid$|realuid|ntdomain|x509|acctgroupuser|oauth|scitoken|send_?credential|runasowner|authtoken|delegat|myproxy|notify|jobnotification|credential)/,
    why: 'HTCondor takes from it whose a job is',
  },
  {
    key: /^(clusterid|procid|autocluster|globaljobid|qdate|job(status|start|run|current|last|queue|state|pid|finished|coredumped|leaseexp|iwd)|managed|isnoop|noop|nonessential|toe$|termination|lastjobstatus|entered|hold|release|remove|num|completion|exit|onexit|leavejob|jobleave|maxretries|jobmax|success|cron|deferral|jobmaterialize|jobfactory|totalsubmit|mytype|targettype|submit|proxy|requirements|rank$|concurrencylimits|committed|cumulative|current|last)/,
    why: 'HTCondor keeps the state of a job in it, or has a command for it without "+"',
  },
];

const nameOfCommand = /^(?:\+|my\.)?[A-Za-z_]\w{0,199}$/i;
const attribute = /^(?:\+|my\.)(.*)$/is;

/** What an administrator is told of a name that is added to those which third parties may give to jobs. */
export interface AddedName {
  /** Whether it is no use: it can never be given, or is allowed anyway. */
  readonly inVain: boolean;
  /** A whole sentence. */
  readonly message: string;
}

/** What a name does that an administrator adds: `fpga_kind`, `+MyTag`. */
export function judgeAddedName(name: string): AddedName {
  const said = (message: string, inVain = false) => ({ inVain, message: `${shown(name)}: ${message}` });
  if (!nameOfCommand.test(name))
    return said('this is no name of a command; write "request_fpgas", or "+MyTag" for an attribute', true);
  if (isListed(name)) return said('every job may have it anyway', true);
  const own = attribute.exec(name)?.[1];
  const [refusals, bare] = own === undefined ? [commandRefusals, name] : [attributeRefusals, own];
  const refusal = refusals.find(({ key }) => key.test(bare.toLowerCase()));
  if (own === undefined && refusal !== undefined) return said(`it cannot be allowed: ${refusal.why}`, true);
  if (refusal !== undefined && ofFactory.test(bare))
    return said(`it cannot be allowed: ${refusal.why}`, true);
  const what = refusal?.why ?? 'thresher does not know what HTCondor or the daemons of your pool do with it';
  return said(`whoever may give jobs to the queue may set it now, for jobs of the queue's user: ${what}`);
}

/** A warning for each name that an administrator adds, at `submitCommands` of a section. */
export function addedNameProblems(names: readonly string[]) {
  return names.map((name, index) => ({
    pointer: `/submitCommands/${index}`,
    code: 'submit-command-added' as const,
    severity: 'warning' as const,
    message: judgeAddedName(name).message,
  }));
}

/** Those of a list of names, which may end in `*`, that no job may have by itself. */
export function namesBeyondLists(names: readonly string[]): readonly string[] {
  return names.filter((name) => !name.endsWith('*') && !isListed(name));
}

const ofFactory = /^(thresher|harvester)/i;

const listed: ReadonlySet<string> = new Set([
  ...allowedCommands.flatMap(({ names }) => names),
  ...allowedAttributes.flatMap(({ names }) => names.map((name) => `+${name.toLowerCase()}`)),
]);

export function isListed(key: string): boolean {
  return listed.has(comparedName(key));
}

/** A name as HTCondor compares it. */
export function comparedName(key: string): string {
  return key.toLowerCase().replace(/^my\./, '+');
}

/** Why a third party may not give a command of this name; undefined: it may. */
export function commandRefusal(key: string, added: readonly string[]): string | undefined {
  if (!nameOfCommand.test(key))
    return `${shown(key)} is no name of a command; it must be letters, digits and "_", with "+" before it for an attribute`;
  if (isListed(key)) return undefined;
  const own = attribute.exec(key)?.[1];
  const [refusals, bare] = own === undefined ? [commandRefusals, key] : [attributeRefusals, own];
  const refusal = refusals.find((one) => one.key.test(bare.toLowerCase()));
  const isAdded = added.some((name) => comparedName(name) === comparedName(key));
  if (isAdded && !judgeAddedName(key).inVain) return undefined;
  if (refusal !== undefined) return refusal.why;
  return `thresher passes on only what it knows to concern one job alone; an administrator can add the name to submitCommands of the source and of the queue's submitter`;
}

/** A text in quotes, shortened for a message. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
}
