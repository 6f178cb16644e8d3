/** A command of a submit description that a third party may give to a job, or one that thresher refuses. */
interface CommandRule {
  readonly key: RegExp;
  /** Absent: the command is allowed. */
  readonly why?: string;
}

/** Commands by name: those that the first matching rule allows, and the others with the reason. Source: condor_submit's manual, HTCondor 25. */
const commandRules: readonly CommandRule[] = [
  {
    key: /^(request_(cpus|memory|disk|gpus)|require_gpus|gpus_(minimum|maximum)_\w+|retry_request_memory\w*)$/,
  },
  { key: /^(requirements|rank|concurrency_limits(_expr)?|keep_claim_idle)$/ },
  { key: /^(priority|prio|nice_user|accounting_group|batch_name|description)$/ },
  { key: /^(allowed_(job|execute)_duration|periodic_(hold|release|remove|vacate)(_reason|_subcode)?)$/ },
  { key: /^(kill_sig|kill_sig_timeout|job_max_vacate_time|job_lease_duration|max_job_retirement_time)$/ },
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

/** Attributes of HTCondor's own, by which a job would become another one. */
const attributeRules: readonly CommandRule[] = [
  { key: /^(thresher|harvester)/, why: 'names that begin so are for the factory' },
  {
    key: /^(wantio_?proxy|chirp|filere?maps|(append|buffer|compress|fetch|local|save|failure)_?files?|jobstarter|starter|shadow|parallelscript|datareuse|keystore|jarfiles|boinc)/,
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

/** Commands by their names as written, `request_cpus` or `+MaxRuntime`, with their values. */
export type SubmitCommands = Readonly<Record<string, string>>;

export interface LineProblem {
  /** From 1. */
  readonly line: number;
  /** A whole sentence. */
  readonly message: string;
}

export interface ReadCommands {
  readonly commands: SubmitCommands;
  readonly problems: readonly LineProblem[];
}

/** Macros of a single job that thresher leaves to HTCondor. */
const ownNumbers = /\$\((?:Cluster|ClusterId|Process|ProcId)\)/gi;

const nameOfCommand = /^(?:\+|my\.)?[A-Za-z_]\w{0,199}$/i;
const attribute = /^(?:\+|my\.)(.*)$/is;

/** Reads lines of a submit description, each of which gives one command to a job. Blank lines and comments count as nothing. */
export function readSubmitCommands(text: string): ReadCommands {
  const commands: Record<string, string> = {};
  const problems: LineProblem[] = [];
  /** Where each command is, by its name as HTCondor compares it. */
  const lines = new Map<string, number>();
  for (const [index, written] of text.split(/\r?\n/).entries()) {
    const line = written.trim();
    if (line === '' || line.startsWith('#')) continue;
    const problem = (why: string) =>
      problems.push({ line: index + 1, message: `line ${index + 1}, ${shown(line)}: ${why}` });
    const match = /^([^\s=:]+)\s*([=:@]?)(=?)\s*(.*)$/s.exec(line);
    const [, key = '', sign = '', second = '', value = ''] = match ?? [];
    const refusal = commandRefusal(key);
    if (/^\w+$/.test(key) && sign !== '=' && refusal !== undefined) problem(refusal);
    else if (sign === '@') problem('text of several lines is not taken; write NAME = VALUE on one line');
    else if (match === null || sign !== '=' || second === '=')
      problem('this is no command of a submit description; write NAME = VALUE');
    else {
      const name = key.toLowerCase().replace(/^my\./, '+');
      const first = lines.get(name);
      const why =
        refusal ??
        valueRefusal(key, value) ??
        (first === undefined ? undefined : `line ${first} has this command already; keep one of them`);
      if (why !== undefined) problem(why);
      else {
        commands[key] = value;
        lines.set(name, index + 1);
      }
    }
  }
  return { commands, problems };
}

/** Why thresher hands this command to no job; undefined: it does. */
export function submitRefusal(key: string, value: string): string | undefined {
  return commandRefusal(key) ?? valueRefusal(key, value);
}

/** The value as HTCondor reads it: nothing in it but the numbers of the job is a macro. */
export function submitText(value: string): string {
  const numbers = value.match(ownNumbers) ?? [];
  return value
    .split(ownNumbers)
    .map((text, index) => text.replaceAll('$', () => '$(DOLLAR)') + (numbers[index] ?? ''))
    .join('');
}

function commandRefusal(key: string): string | undefined {
  if (!nameOfCommand.test(key))
    return `${shown(key)} is no name of a command; it must be letters, digits and "_", with "+" before it for an attribute`;
  const own = attribute.exec(key)?.[1];
  const [rules, name] = own === undefined ? [commandRules, key] : [attributeRules, own];
  const rule = rules.find((one) => one.key.test(name.toLowerCase()));
  if (rule !== undefined) return rule.why;
  if (own !== undefined) return undefined;
  return `thresher does not know ${shown(key)} and passes on only commands that it knows; an attribute of the job is written "+${key} = VALUE"`;
}

function valueRefusal(key: string, value: string): string | undefined {
  if (value === '') return 'it has no value';
  if (/[\u0000-\u0008\u000a-\u001f\u007f\u0085\u2028\u2029]/.test(value) || !value.isWellFormed())
    return 'its value has a control character; it must be one line of text';
  if (value.endsWith('\\'))
    return 'its value ends with a backslash, by which the next line would be a part of it';
  const macro = (/\$\$/.exec(value) ?? /\$\w*\(/.exec(value.replaceAll(ownNumbers, '')))?.[0];
  if (macro === undefined) return key.toLowerCase() === 'requirements' ? wholeRefusal(value) : undefined;
  return `"${macro}" begins a macro, which could bring in what is not in the text; only $(ClusterId) and $(ProcId) are taken`;
}

/** The requirements of the template stand in parentheses beside these: a text that closes its own would take their place. */
function wholeRefusal(expression: string): string | undefined {
  const rule = 'the requirements of the queue count beside these';
  if (expression.includes('\\"'))
    return `it has a backslash before a quotation mark; ${rule}, so write no such text`;
  const code = expression.replaceAll(/"[^"]*"/g, '');
  const odd = /"|'|\/\/|\/\*/.exec(code)?.[0];
  if (odd !== undefined)
    return `${shown(odd)} stands alone in it; ${rule}, so it must be one whole expression`;
  const open: string[] = [];
  const closing: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };
  for (const [bracket] of code.matchAll(/[()[\]{}]/g)) {
    const opening = closing[bracket];
    if (opening === undefined) open.push(bracket);
    else if (open.pop() !== opening)
      return `"${bracket}" closes no "${opening}"; ${rule}, so it must be one whole expression`;
  }
  const [first] = open;
  return first === undefined
    ? undefined
    : `"${first}" is not closed; ${rule}, so it must be one whole expression`;
}

function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
}
