import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { mostOfJob } from '../../../src/worker/worker.ts';
import {
  addedNameProblems,
  allowedAttributes,
  allowedCommands,
  namesBeyondLists,
} from '../../../src/clients/htcondor/submit-names.ts';
import { callable } from '../../../src/clients/htcondor/expression.ts';
import { jobAttributes, steadyAttributes } from '../../../src/clients/htcondor/job-attributes.ts';
import {
  boundedValue,
  readSubmitCommands,
  submitRefusal,
  submitText,
} from '../../../src/clients/htcondor/submit-commands.ts';

const read = (text: string) => readSubmitCommands(text);
const refused = (line: string) => read(line).problems.map(({ message }) => message);

describe('commands of a submit description that a third party writes', () => {
  it('are read line by line, with blank lines, comments and Windows ends', () => {
    const text =
      '+MaxRuntime=10\r\n\n# a remark\n  request_cpus = 4 \nMY.WantOS = "a = b, $(ClusterId).$(ProcId)"';
    expect(read(text)).to.deep.equal({
      commands: {
        '+MaxRuntime': '10',
        request_cpus: '4',
        'MY.WantOS': '"a = b, $(ClusterId).$(ProcId)"',
      },
      problems: [],
    });
  });

  it('are refused one by one, with line, text and reason, and the others stay', () => {
    const { commands, problems } = read('request_cpus = 2\nqueue 5\nexecutable = /bin/id\nrank = 1');
    expect(commands).to.deep.equal({ request_cpus: '2', rank: '1' });
    expect(problems.map(({ line }) => line)).to.deep.equal([2, 3]);
    expect(problems[0]?.message).to.equal(
      'line 2, "queue 5": the number of jobs is the resource\'s own field "queue"',
    );
    expect(problems[1]?.message).to.match(/^line 3, "executable = \/bin\/id": thresher writes which program/);
  });

  it('are refused where a second one would win over the first without a word', () => {
    const { commands, problems } = read(
      'requirements = a\n+WantOS = 1\nRequirements = b\nmy.BigMemJob = 1\nMY.wantos = 2',
    );
    expect(commands).to.deep.equal({ requirements: 'a', '+WantOS': '1', 'my.BigMemJob': '1' });
    expect(problems.map(({ message }) => message)).to.deep.equal([
      'line 3, "Requirements = b": line 1 has this command already; keep one of them',
      'line 5, "MY.wantos = 2": line 2 has this command already; keep one of them',
    ]);
  });

  const forbidden: Readonly<Record<string, readonly string[]>> = {
    'another queue': [
      'queue',
      'Queue 3',
      'qUeUe\t5',
      '\tqueue\t5',
      'queue\u00a05',
      'queue: 3',
      '+WantOS = 1\rqueue 3',
      'queue = 2',
      'QUEUE from list.txt',
      'queue arguments in (a b)',
    ],
    'another program': ['executable = x', 'Arguments = "-c id"', 'transfer_executable = false', 'args = x'],
    'the environment of the access point': ['getenv = True', 'environment = "A=1"', 'env = A=1'],
    'files of the access point': [
      'transfer_input_files = /etc/shadow',
      'transfer_output_remaps = "a = /etc/b"',
      'should_transfer_files = NO',
      'append_files = x',
      'public_input_files = x',
      'x509userproxy = /tmp/x509up_u0',
      'manifest_dir = /tmp',
      'starter_log = /tmp/x',
      'want_io_proxy = true',
      'file_remaps = "a = /etc/shadow"',
      'local_files = x',
      'skip_filechecks = true',
      'output_destination = file:///tmp',
      'jar_files = x',
      'keystore_file = x',
    ],
    'a time and a mail of its own': [
      'deferral_time = 1',
      'cron_minute = *',
      'notification = Always',
      'notify_user = a@b',
      'email_attributes = Owner',
      'job_ad_information_attrs = Owner',
      'hook_keyword = X',
      'noop_job = true',
      'leave_in_queue = true',
    ],
    'places of output': [
      'output = /etc/x',
      'Error = x',
      'log = x',
      'initialdir = /',
      'stdout = x',
      'dagman_log = x',
    ],
    'another universe': ['universe = local', 'container_image = x', 'docker_image = x', 'vm_type = kvm'],
    'another site': ['grid_resource = condor a b', 'batch_queue = x', 'remote_universe = local'],
    'foreign credentials': ['use_oauth_services = scitokens', 'run_as_owner = true', 'myproxy_host = x'],
    'repeated or held jobs': [
      'max_retries = 3',
      'on_exit_remove = False',
      'hold = True',
      'max_materialize = 1',
    ],
    'a foreign account': ['accounting_group_user = root', 'notify_user = a@b', '+AcctGroupUser = "root"'],
    'statements of a file': [
      'include : /etc/shadow',
      'include command : id',
      'if true',
      'endif',
      'use FEATURE : GPUs',
      'error : x',
      'warning : x',
    ],
    'attributes that reach other jobs, or files of the access point': [
      '+OtherJobRemoveRequirements = "true"',
      '+AccountingGroup = "group_x.alice"',
      '+AcctGroup = "alice"',
      'keep_claim_idle = 99999',
      'MY.otherjobremoverequirements = "true"',
      '+CommonInputFiles = "/etc/shadow"',
      '+TransferTheseCatalogs = "x"',
      '+MountUnderScratch = "/etc"',
      'transfer_common_input = /etc/shadow',
    ],
    'attributes that nobody has allowed': ['+MyTag = 1', 'MY.Institute = "x"', '+InHTCondor30 = true'],
    'attributes of HTCondor': [
      '+JobUniverse = 12',
      'MY.Owner = "root"',
      'my.iwd = "/"',
      '+Cmd = "/bin/sh"',
      '+TransferInput = "/etc/shadow"',
      '+In = "/etc/shadow"',
      '+Out = "/tmp/x"',
      '+UserLog = "/tmp/x"',
      '+LeaveJobInQueue = true',
      '+WantIOProxy = true',
      'my.wantioproxy = true',
      '+JobStarterLog = "/tmp/x"',
      '+JobStarterDebug = true',
      '+StarterUserLog = "/tmp/x"',
      '+FileRemaps = "a = /etc/shadow"',
      '+LocalFiles = "/etc/shadow"',
      '+AppendFiles = "/etc/x"',
      '+SpooledOutputFiles = "/etc/x"',
      '+SpoolExecutable = true',
      '+DataReuseManifestSHA256 = "/etc/shadow"',
      '+ParallelScriptShadow = "/bin/sh"',
      '+OrigIwd = "/"',
      '+UidDomain = "x"',
      '+NTDomain = "x"',
      '+NotifyUser = "a@b"',
      '+JobNotification = 1',
      '+EmailAttributes = "Owner"',
      '+DeferralTime = 1',
      '+CronMinute = "*"',
      '+IsNoopJob = true',
      '+Managed = "External"',
      '+JobStartDate = 1',
      '+TerminationPending = true',
      '+Requirements = true',
      '+PreCmd = "x"',
      '+PostArguments = "x"',
      '+RequestedChroot = "/"',
      '+GridResource = "batch"',
      '+DockerImage = "x"',
      '+x509userproxy = "/tmp/x"',
      '+HookKeyword = "X"',
      '+ThresherWorker = "1"',
      '+harvesterWorkerID = "7"',
    ],
    macros: [
      '+WantOS = $(HOME)',
      '+WantOS = $ENV(HOME)',
      '+WantOS = $F(x)',
      '+WantOS = "$$(Arch)"',
      '+WantOS = $$([ 1 ])',
      '+WantOS = $(DOLLAR)(HOME)',
      'request_cpus = $INT(x)',
      '+WantOS = $($(Process))',
      '+WantOS = $$(Process)',
      '+WantOS = $($(Process)HOME)',
    ],
    'requirements that would leave their place beside those of the queue': [
      'requirements = true) || (true',
      'requirements = true) || true',
      'Requirements = (true',
      'requirements = [a = 1',
      'requirements = true ]',
      'requirements = true // ',
      'requirements = true /* ',
      'requirements = "a',
      String.raw`requirements = "\") || (true || "" == "\"`,
      "requirements = 'a) || (b",
    ],
    'text that is no line of its own': [
      '+WantOS = 1 \\',
      '+WantOS @=end',
      'rank',
      'request_cpus',
      'request_cpus =',
      '+WantOS = "\u0000"',
      '+WantOS = "\u2028queue"',
      '= 3',
      '+WantOS B = 3',
      '+ = 3',
      'request_cpus == 3',
      'nothing_known = 1',
    ],
  };
  for (const [what, lines] of Object.entries(forbidden))
    for (const line of lines)
      it(`refuse ${what}: ${JSON.stringify(line)}`, () => {
        const [message = '', ...more] = refused(line);
        expect(message).to.match(/^line 1, ".*": [^ ].{10}/s);
        expect(more).to.deep.equal([]);
        expect(read(line).commands).to.deep.equal({});
      });

  it('pass on the needs of a job and its own attributes', () => {
    const lines = [
      '+MaxRuntime = 1200',
      '+JobFlavour = "longlunch"',
      'accounting_group = group_u_CMS',
      'accounting_group = 2024prod.higgs-ww',
      '+DESIRED_Sites = "T2_CH_CERN"',
      '+WantGlidein = true',
      '+ProjectName = "x"',
      'REQUEST_MEMORY = 2G',
      'requirements = (OpSysAndVer =?= "AlmaLinux9") && regexp("^b(6|7)\\.", Machine)',
      'requirements = Machine =!= LastRemoteHost',
      'requirements = max({1, 2}) == 2 && Name != "a)b"',
      'periodic_remove = (JobStatus == 5) && (time() - EnteredCurrentStatus > 60)',
    ];
    for (const line of lines) expect(refused(line), line).to.deep.equal([]);
  });

  describe('hole 1: have values that end no daemon of HTCondor, whatever its recursion and memory', () => {
    const tenfold = (levels: number): string =>
      levels === 0 ? '"x"' : `replaceall("x","xxxxxxxxxx",${tenfold(levels - 1)})`;
    const long: Readonly<Record<string, readonly [line: string, why: RegExp]>> = {
      'negations of each other': [`requirements = ${'!'.repeat(600)}true`, /more than 500 operators$/],
      'a long sum': [`rank = ${'1+'.repeat(600)}1`, /more than 500 operators$/],
      'a long list': [`requirements = max({${'1,'.repeat(600)}1}) > 1`, /more than 500 operators$/],
      'a long text': [
        `periodic_hold_reason = "${'x'.repeat(5000)}"`,
        /has 5002 characters; it may have 4096$/,
      ],
      'deep brackets': [
        `+WantOS = ${'('.repeat(60)}1${')'.repeat(60)}`,
        /more than 50 brackets in each other$/,
      ],
      'a text that grows tenfold at each level': [
        `periodic_hold_reason = ${tenfold(6)}`,
        /it calls "replaceall"/,
      ],
      // The smallest integer by -1 ends HTCondor, and neither need be written as a number.
      'a division that ends the daemon': [
        'periodic_remove = quantize(-9223372036854775806, -1) == 1',
        /it calls "quantize"/,
      ],
      'a text of texts': ['+WantOS = strcat(WantOS, "a")', /it calls "strcat"/],
      'an expression in a text': ['rank = eval("Rank")', /it calls "eval"/],
      'the key of its slot': ['periodic_hold_reason = ClaimId', /it names "ClaimId", which HTCondor keeps/],
      'what a job sets while it runs': [
        'periodic_hold_reason = ChirpWhy',
        /it names "ChirpWhy", which a job may set/,
      ],
      'the same of a machine': ['rank = TARGET.chirpB34', /it names "chirpB34"/],
      'the size of that key': ['periodic_hold_subcode = int(MY.claimidlist)', /it names "claimidlist"/],
      'the key of a machine': ['rank = TARGET.Capability =?= "x"', /it names "Capability"/],
      'the key of its files': ['+WantOS = {TransferKey}', /it names "TransferKey"/],
      'a private attribute': ['periodic_remove = _condor_PrivX == 1', /it names "_condor_PrivX"/],
      'an ad of its own': ['+WantOS = [a = 1]', /"= 1]" is no part of an expression$/],
      'a place of a list': ['rank = {1, 2}[1]', /has "\[": it may have neither ads nor places of lists$/],
      'an ad without values': ['+WantOS = []', /has "\[": it may have neither ads nor places of lists$/],
      'a name in a text': [
        '+WantOS = Owner["BigMemJob"]',
        /has "\[": it may have neither ads nor places of lists$/,
      ],
      'a comment': ['rank = /*"*/ strcat("a") /*"*/', /it has a comment/],
      'the rest of a line': ['rank = 1 // + 2', /it has a comment/],
      // HTCondor calls a function whose name stands in single quotes.
      'a function in single quotes': [`rank = 'strcat'("a", "b")`, /it has a name in single quotes/],
      'a scoped one': ["rank = MY.'strcat'(Owner)", /it has a name in single quotes/],
      // In ads of the old way the text goes on behind it, and ends at the next quotation mark.
      'a text that ends elsewhere for another reader': [
        String.raw`rank = "a\\" =!= " =!= strcat(Owner,Owner) + "`,
        /a backslash before a quotation mark/,
      ],
      // The job itself again, in HTCondor.
      'a scope behind a scope': ['rank = TARGET.TARGET.WantOS + 1', /has a "\." behind something else/],
      'the job behind a machine': ['rank = TARGET.MY.WantOS', /has a "\." behind something else/],
      'an ad of an ad': ['rank = TARGET.GPUs_x.Capability', /has a "\." behind something else/],
      'the outermost ad': ['rank = .WantOS', /has a "\." behind something else/],
      'an escaped quotation mark': [String.raw`+WantOS = "a\"b"`, /a backslash before a quotation mark/],
      'the payload of a job many times': [`rank = ${'Env + '.repeat(12)}1`, /more than 500 operators$/],
      'many comparisons of lists': [
        `rank = ${'stringListMember(Name, "a,b") + '.repeat(12)}1`,
        /more than 500 operators$/,
      ],
      'many patterns': [`rank = ${'regexp("a", Name) + '.repeat(12)}1`, /more than 500 operators$/],
      'a bracket that is not closed': ['periodic_vacate = (1', /"\(" is not closed$/],
      'a wrong order': ['prio = high', /its value is "high"; it must be a whole number$/],
      'no signal': ['kill_sig = SIGFOO', /it must be the name of a signal, as SIGTERM$/],
      'a signal that ends nothing': [
        'kill_sig = sigstop',
        /"sigstop", a signal that ends no job; it must be one that does/,
      ],
      'its number': ['kill_sig = 19', /"19", a signal that ends no job/],
      'a signal that programs ignore': ['KILL_SIG = SIGCHLD', /a signal that ends no job/],
      'a long time between signal and end': [
        'job_max_vacate_time = 601',
        /its value is "601"; it must be a whole number of seconds, at most 600$/,
      ],
      'the same by its earlier name': ['kill_sig_timeout = 86400', /whole number of seconds, at most 600$/],
      'a time that nobody knows before': [
        'job_max_vacate_time = 60 * 60',
        /whole number of seconds, at most 600$/,
      ],
      'a limit whose name has no second part': [
        'concurrency_limits = Authorization..c',
        /it must be names with commas between them/,
      ],
      'a limit whose name has three parts': [
        'concurrency_limits = ok:1, X.y.Cedar:6001',
        /it must be names with commas between them/,
      ],
      'what is no truth': ['nice_user = "$ not authorized"', /it must be true or false$/],
      'a limit without an amount': [
        'concurrency_limits_expr = "lic:nan"',
        /it must be a text in "\.\.\." of names with commas between them/,
      ],
      'limits that an expression makes': [
        'concurrency_limits_expr = WantOS',
        /it must be a text in "\.\.\." of names/,
      ],
      'no names of limits': ['concurrency_limits = 1 2', /it must be names with commas between them/],
      'a group of its own for each job': [
        'accounting_group = $(ClusterId).$(ProcId)',
        /it must be the name of a group: letters, digits/,
      ],
      'a group that looks like a user': ['accounting_group = root@pool', /it must be the name of a group/],
      'a long name': [`batch_name = ${'x'.repeat(1001)}`, /a text of at most 1000 characters$/],
    };
    for (const [what, [line, why]] of Object.entries(long))
      it(`refuse ${what}`, () => {
        const [message = '', ...more] = refused(line);
        expect(message).to.match(why);
        expect([more, read(line).commands]).to.deep.equal([[], {}]);
      });

    for (const pattern of [
      'a*a*a*[bc]',
      '^(a+)+$',
      '(a|aa)*[bc]',
      '(a|aa) *[bc]',
      '(a|aa)(a|aa)(a|aa)b',
      'a?a?a?a?aaaa',
      'a{1,9}a{1,9}b',
      'a*?b',
      '(?=a*)b',
      '(a|b(?1))',
      '(?i)x',
      '(*LIMIT_MATCH=9)a',
      '(a)\\1',
      '\\052a\\052a\\052[bc]',
      '\\Qa\\E',
      '\\X',
      '\\g{1}',
      'x'.repeat(300),
      '(a|b)a*c',
      '^a|b*c',
      '^(a|b)c|d*e',
      '.*a*b*',
      'a*b.*c',
      '.*a|b*c',
      '.*{2}a*',
      'a*b\\\\.*',
      `(${Array.from({ length: 30 }, () => '.').join('|')})x`,
    ])
      it(`refuse a pattern that may take long to match, ${pattern.slice(0, 30)}`, () => {
        const [message = ''] = refused(`requirements = regexp("${pattern}", TARGET.Machine)`);
        expect(message).to.include('takes a pattern that is quickly matched with any text');
      });

    it('match a pattern with what a machine says of itself alone, whose texts are short', () => {
      const line = (given: string) => `rank = regexp(${given})`;
      for (const given of [
        '"a", TARGET.Machine',
        '"a", machine, "i"',
        '"a", Name',
        '".*GPU.*", OpSysAndVer',
        '"^.*A(40|100)", CUDADeviceName, "i"',
        '"[ab]*c.*", Arch',
        '"^wn-\\\\d+", target.Site, "i"',
      ])
        expect(refused(line(given)), given).to.deep.equal([]);
      for (const given of [
        '"a", Env',
        '"a", MY.Args',
        '"a", "aaa"',
        '"a", TARGET.X ?: Env',
        '"a", Machine ?: Env',
        '"a", WantOS',
      ])
        expect(refused(line(given)).join(' '), given).to.match(
          /attribute of a machine; write TARGET\. and its name/,
        );
      expect(refused(line('Rank, TARGET.Machine')).join(' ')).to.match(
        /takes a pattern; write it as a text$/,
      );
      for (const option of ['WantOS', 'TARGET.X', '"abcdefghijk"', '"i", WantOS', '"i", "i"', '","', '('])
        expect(refused(line(`"a", TARGET.X, ${option}`)), option).to.have.length(1);
    });

    it('call what requirements, bounds and memory of a job need, and nothing else that HTCondor has', () => {
      expect([...callable]).to.have.members([
        ...['ifthenelse', 'isundefined', 'iserror', 'int', 'real', 'floor', 'ceiling', 'round', 'min'],
        ...['max', 'time', 'regexp', 'stringlistmember', 'stringlistimember'],
      ]);
      const page = readFileSync('docs/htcjob.md', 'utf8').toLowerCase();
      expect([...callable].filter((name) => !page.includes(`\`${name}\``))).to.deep.equal([]);
      const { functions } = JSON.parse(readFileSync('test/fixtures/htcondor/names.json', 'utf8')) as {
        readonly functions: readonly string[];
      };
      expect(functions).to.have.length(99);
      expect([...callable].filter((name) => !functions.includes(name))).to.deep.equal([]);
      for (const name of functions.filter((one) => !callable.has(one)))
        for (const call of [`${name}("a")`, `${name.toUpperCase()} ()`, `1 + ${name}(X, {"a"})`])
          expect(refused(`rank = ${call}`), call).to.have.length(1);
      expect(refused('rank = strcmp(Owner, "a")')).to.deep.equal([
        'line 1, "rank = strcmp(Owner, \\"a\\")": it calls "strcmp"; it may call ifThenElse, isUndefined, isError, int, real, floor, ceiling, round, min, max, time, regexp, stringListMember, stringListIMember; an administrator can call others in the template of the queue',
      ]);
    });

    it('refuse expressions that together take any number of steps, or that go in a circle', () => {
      const sum = (name: string) => Array.from({ length: 20 }, () => name).join('+');
      const chain = [
        '+REQUIRED_OS = 1 + 1',
        `request_disk = ${sum('REQUIRED_OS')}`,
        `+DESIRED_Sites = ${sum('my.RequestDisk')}`,
        `request_memory = ${sum('DESIRED_Sites')}`,
        '+WantOS = BigMemJob',
        'MY.BigMemJob = wantos',
      ];
      const { commands, problems } = read(chain.join('\n'));
      expect(Object.keys(commands)).to.deep.equal(['+REQUIRED_OS', 'request_disk', '+DESIRED_Sites']);
      expect(problems.map(({ line }) => line)).to.deep.equal([4, 5, 6]);
      expect(problems[0]?.message).to.equal(
        'line 4, "request_memory": it names itself, or an attribute that none of these lines gives, or it takes more than 2000 steps with the other commands that it names and those before it',
      );
    });

    it('count what HTCondor itself names in an expression, and commands with other names than their attributes', () => {
      const long = (name: string) => Array.from({ length: 400 }, () => name).join('+');
      const { problems } = read(
        [
          `gpus_minimum_memory = ${long('1')}`,
          `gpus_maximum_capability = ${long('GPUsMinMemory')}`,
          `request_memory = ${long('1')}`,
          `rank = ${long('Requirements')}`,
          `+BigMemJob = ${long('RequireGPUs')}`,
          'request_disk = Requirements',
        ].join('\n'),
      );
      expect(problems.map(({ line }) => line)).to.deep.equal([2, 4, 5, 6]);
    });

    const words = ['MY', 'my', 'Target', 'SELF', 'PARENT', 'TOPLEVEL', 'ROOT', 'Other', 'super'];
    const ofMatches = ['LEFT', 'Right', 'ad', 'lCtx', 'rCtx', 'adcl', 'adcr', 'JOB', 'Schedd'];
    const ofBoth = ['symmetricMatch', 'leftMatchesRight', 'rightMatchesLeft', 'leftRankValue'];
    it('refuse whole ads, wherever they stand: their texts hold the key of the slot, and take milliseconds', () => {
      const places = (word: string) => [
        ...[word, `MY.${word}`, `TARGET.${word}`, `target . ${word}`, `.${word}`, `MY.${word}.Owner`],
        ...[`TARGET.${word}.${word}`, `{1, ${word}}[1]`, `${word} =?= ${word}`, `(${word})`, `!${word}`],
        ...[`${word} ?: 1`, `true ? ${word} : 1`, `${word}[0]`, `[${word} = 1]`, `[a = ${word}]`],
        ...(word.toLowerCase() === 'my' || word.toLowerCase() === 'target' ? [] : [`${word}.Owner`]),
        ...[`${word}.`, `${word}.(Owner)`, `${word}."Owner"`, `${word}(1)`],
      ];
      for (const word of [...words, ...ofMatches, ...ofBoth])
        for (const key of ['rank', 'periodic_hold_reason', '+WantOS', 'require_gpus'])
          for (const one of places(word))
            expect(refused(`${key} = ${one}`), `${key} ${one}`).to.have.length(1);
      expect(refused('periodic_hold_subcode = versioncmp(MY, JobDescription)').join(' ')).to.include(
        'it names "MY", a whole ad;',
      );
      expect(refused('rank = isClassAd(self)')).to.deep.equal([
        'line 1, "rank = isClassAd(self)": it names "self", a whole ad; name one attribute, or MY. or TARGET. and its name',
      ]);
      for (const one of [
        '"MY"',
        'MY.Owner =?= "self"',
        'TARGET.Memory - My.RequestMemory',
        'Parents',
        'MyAd',
      ])
        expect(refused(`rank = ${one}`), one).to.deep.equal([]);
    });

    it('read machines in requirements and rank alone, and elsewhere what HTCondor sets or their own lines give', () => {
      const { attributes } = JSON.parse(readFileSync('test/fixtures/htcondor/names.json', 'utf8')) as {
        readonly attributes: readonly string[];
      };
      const unknown = jobAttributes.filter(
        (one) => !attributes.includes(one) && !one.endsWith('Provisioned'),
      );
      expect(unknown).to.deep.equal([]);
      const page = readFileSync('docs/htcjob.md', 'utf8');
      expect(jobAttributes.filter((one) => !page.includes(`\`${one}\``))).to.deep.equal([]);
      const keys = [...allowedCommands, ...allowedAttributes]
        .flatMap(({ names }) => names)
        .map((name) => (/^[a-z]/.test(name) ? name : `+${name}`))
        .filter((key) => submitRefusal(key, `1${' + 1'.repeat(300)}`) === undefined);
      const taken = (key: string, value: string) => submitRefusal(key, value) === undefined;
      const isSteady = (name: string) => steadyAttributes.includes(name);
      expect(steadyAttributes.filter((name) => !jobAttributes.includes(name))).to.deep.equal([]);
      const matches = ['requirements', 'rank'];
      expect(keys).to.include.members(matches).and.to.have.length.greaterThan(25);
      for (const key of keys) {
        const isMatch = matches.includes(key);
        const isOfGpus = key === 'require_gpus';
        for (const name of ['Memory', 'TARGET.Memory', 'TARGET.JobStatus', 'OpSysAndVer', 'PartOfTemplate'])
          expect(taken(key, name), `${key} ${name}`).to.equal(isMatch);
        for (const one of [
          'Start',
          'WithinResourceLimits',
          'Requirements',
          'Rank',
          'PeriodicHold',
          'Preempt',
        ])
          for (const scope of ['', 'MY.', 'TARGET.'])
            expect(taken(key, scope + one), `${key} ${scope}${one}`).to.equal(false);
        for (const name of [...jobAttributes, 'RequestCpus', 'MaxRuntime'])
          for (const scope of ['', 'MY.'])
            expect(taken(key, scope + name), `${key} ${scope}${name}`).to.equal(
              !isOfGpus &&
                (isMatch || key.startsWith('periodic_') || !jobAttributes.includes(name) || isSteady(name)),
            );
        expect(taken(key, 'time() > 1'), `${key} time`).to.equal(isMatch || key.startsWith('periodic_'));
        expect(taken(key, 'GlobalMemoryMb > 1')).to.equal(isMatch || isOfGpus);
      }
      expect(refused('request_disk = TARGET.WithinResourceLimits + 1')).to.deep.equal([
        'line 1, "request_disk = TARGET.WithinResourceLimits + 1": it names "WithinResourceLimits", of a machine; only requirements and rank may read machines',
      ]);
    });

    describe('name nothing that is another one when the job starts: its machine would refuse it then, without end', () => {
      const added = ['request_fpgas', '+MyTag', 'RequestMemory', '+RequestDisk'];
      const sizes = allowedCommands[0]?.names ?? [];
      const attributes = allowedAttributes.flatMap(({ names }) => names.map((name) => `+${name}`));
      const keys = [...sizes, ...attributes, ...added, 'MY.WantOS'].filter(
        (key) => !/^request_?(cpus|gpus|fpgas)$/.test(key),
      );
      const changing = jobAttributes.filter((name) => !steadyAttributes.includes(name));

      it('in what a job asks for, and in its attributes', () => {
        expect(keys).to.have.length.greaterThan(20);
        expect(changing).to.include.members([
          ...['JobStatus', 'LastJobStatus', 'EnteredCurrentStatus', 'CurrentTime', 'CurrentHosts'],
          ...['RemoteHost', 'LastRemoteHost', 'JobStartDate', 'JobCurrentStartDate', 'LastMatchTime'],
          ...['NumJobMatches', 'NumShadowStarts', 'JobRunCount', 'VacateReasonCode', 'MemoryProvisioned'],
        ]);
        for (const key of keys) {
          for (const name of changing)
            for (const value of [name, `MY.${name.toUpperCase()}`, `ifThenElse(isUndefined(${name}), 1, 2)`])
              expect(submitRefusal(key, value, added), `${key} ${value}`).to.match(/^it names "/);
          for (const call of ['time()', 'TIME ()', 'ifThenElse(time() > 1, 1, 2)', 'MY.time()'])
            expect(submitRefusal(key, call, added), `${key} ${call}`).to.match(
              /^it calls "time", which gives/i,
            );
        }
      });

      it('but what stays, in any of them, and numbers, texts and booleans', () => {
        for (const key of keys.filter((one) => one !== 'require_gpus'))
          for (const value of [...steadyAttributes, '1', '"a"', 'true', 'undefined', 'RequestCpus', 'WantOS'])
            expect(submitRefusal(key, value, added), `${key} ${value}`).to.equal(undefined);
      });

      it('and say what is right', () => {
        expect(refused('request_memory = ifThenElse(JobStatus == 2, 67108864, 1)')).to.deep.equal([
          'line 1, "request_memory = ifThenElse(JobStatus == 2, 67108864, 1)": it names "JobStatus", which may be another one by the time the job starts; machines compare it again then, and what differs has the job start and fail without end: name MemoryUsage or NumJobStarts',
        ]);
        const page = readFileSync('docs/htcjob.md', 'utf8');
        const said = /stay the same from its match to its start: ([^;]*);/.exec(page)?.[1] ?? '';
        expect(said.match(/\w{3,}/g)?.filter((word) => word !== 'and')).to.deep.equal([...steadyAttributes]);
        expect(refused('+MaxRuntime = time()')).to.deep.equal([
          'line 1, "+MaxRuntime = time()": it calls "time", which gives another number by the time the job starts; machines compare it again then, and what differs has the job start and fail without end: write what stays the same',
        ]);
      });

      it('nor by way of others of their lines', () => {
        const lines = (...all: readonly string[]) => read(all.join('\n')).problems.map(({ line }) => line);
        expect(
          lines('request_memory = BigMemJob', '+BigMemJob = ifThenElse(JobStatus == 2, 9, 1)'),
        ).to.include(2);
        expect(lines('request_memory = BigMemJob', '+BigMemJob = 2000 * (NumJobStarts + 1)')).to.deep.equal(
          [],
        );
        expect(lines('periodic_hold = BigMemJob > 1 && JobStatus == 2', '+BigMemJob = 2')).to.deep.equal([]);
      });
    });

    it('name what others of their lines give, and not what a template may have made of it', () => {
      const lines = (...all: readonly string[]) => read(all.join('\n')).problems.map(({ line }) => line);
      expect(lines('request_memory = RequestCpus * 2000')).to.deep.equal([1]);
      expect(lines('request_memory = RequestCpus * 2000', 'request_cpus = 2')).to.deep.equal([]);
      expect(lines('+WantOS = MaxRuntime')).to.deep.equal([1]);
      expect(lines('+WantOS = MaxRuntime', 'MY.MaxRuntime = 9')).to.deep.equal([1]);
      expect(lines('+WantOS = BigMemJob', 'MY.BigMemJob = 9')).to.deep.equal([]);
      expect(lines('periodic_hold = MemoryUsage > RequestMemory && MaxRuntime > 9')).to.deep.equal([]);
      expect(lines('requirements = TARGET.Memory > RequestMemory')).to.deep.equal([]);
    });

    it('call no function with a whole ad', () => {
      for (const name of callable)
        for (const word of [...words, ...ofMatches, ...ofBoth])
          for (const all of [word, `${word}, "a"`, `"a", ${word}`, `"a", ${word}, "a"`, `"a", "a", ${word}`])
            expect(refused(`rank = ${name}(${all})`), `${name}(${all})`).to.have.length(1);
    });

    it('look for a name in what is written, or what a machine says of itself, alone', () => {
      for (const name of ['stringListMember', 'StringListIMember']) {
        for (const given of ['"x", TARGET.X', 'Machine, "a,b"', 'target.Site, TARGET.Sites', '"a", "a"'])
          expect(refused(`rank = ${name}(${given})`), given).to.deep.equal([]);
        for (const given of [
          ...['', '"a"', '"a", Env', '"a", MY.Args', 'Owner, "a"', '"a", HoldReason', '"a", MY.Target.X'],
          ...['"a", {"a"}', '"a", WantOS', '"a", "b", ","', '"a", TARGET.X, TARGET.Y', '"a", (TARGET.X)'],
          ...['"a", TARGET.X ?: Env', '"a" "b"', 'max({1}), "a"', '"a", '],
        ])
          expect(refused(`rank = ${name}(${given})`).join(' '), given).to.match(
            /takes two texts, the second of names with commas between them; write each in "\.\.\.", or as TARGET\. and the name of an attribute of a machine$|is no part|is not closed/,
          );
      }
    });

    it('count the lengths of texts wherever they are named', () => {
      const long = `"${'a,b.'.repeat(1020)}"`;
      const steps = (lines: readonly string[]) => read(lines.join('\n')).problems.map(({ line }) => line);
      const times = (count: number, call: string) => Array.from({ length: count }, () => call).join('+');
      expect(steps([`+WantOS = ${long}`, `rank = ${times(14, '(WantOS == "x")')}`])).to.deep.equal([]);
      expect(steps([`+WantOS = ${long}`, `rank = ${times(20, '(WantOS == "x")')}`])).to.deep.equal([2]);
      expect(steps([`rank = ${times(11, '(Env == "a")')}`])).to.deep.equal([1]);
      const pairs = ['+WantOS = BigMemJob', '+BigMemJob = WantOS', 'rank = WantOS == "a"'];
      expect(steps(pairs)).to.deep.equal([1, 2, 3]);
    });

    it('find in turns that grow with the commands alone, whatever they name of each other, that they take too many', () => {
      const names = [
        'BigMemJob',
        'WantOS',
        'REQUIRED_OS',
        'DESIRED_Sites',
        'UNDESIRED_Sites',
        'DESIRED_Archs',
      ];
      const lines = names.map(
        (name, at) => `+${name} = ${Array.from({ length: 200 }, () => names[at + 1] ?? '1').join('?:')}`,
      );
      expect(read([...lines, 'rank = BigMemJob'].join('\n')).problems.length).to.equal(6);
    });

    it('count all commands of a job together, also where they have its number', () => {
      const sum = Array.from({ length: 400 }, () => '1').join('+');
      const keys = ['hold', 'release', 'remove', 'vacate', 'hold_subcode'].map((key) => `periodic_${key}`);
      const { problems } = read(
        [...keys, '+WantOS', '+BigMemJob'].map((key) => `${key} = ${sum}`).join('\n'),
      );
      expect(problems.map(({ line }) => line)).to.deep.equal([]);
      const more = read([...keys, 'rank'].map((key) => `${key} = ${sum}`).join('\n')).problems;
      expect(more.map(({ line }) => line)).to.deep.equal([6]);
      const numbered = [
        `+WantOS = ${sum}`,
        `rank = $(ProcId) + ${Array.from({ length: 6 }, () => 'WantOS').join('+')}`,
      ];
      expect(read(numbered.join('\n')).problems.map(({ line }) => line)).to.deep.equal([2]);
    });

    it('take those of users', () => {
      for (const line of [
        'request_memory = ifThenElse(MemoryUsage =!= undefined, max({MemoryUsage * 3 / 2, 2000}), 2000)',
        'request_memory = ifThenElse(MemoryUsage =!= undefined, MemoryUsage * 3 / 2, 2000)',
        'request_memory = 2000 * (NumJobStarts + 1)',
        'request_memory = 2 GB',
        'request_disk = 20480K',
        'request_disk = max({1024, (TransferInputSizeMB + 1) * 1.25}) * 1024',
        'requirements = TARGET.HasSingularity is true || stringListIMember("a", TARGET.X)',
        'requirements = stringListMember("x", TARGET.y) && stringListIMember(Name, "a,b")',
        'requirements = stringListMember(TARGET.GLIDEIN_CMSSite, "T2_CH_CERN, T1_DE_KIT") && !stringListIMember(Machine, "wn1,wn2")',
        'concurrency_limits_expr = "licence:2, XSW_sw.a:1.5"',
        'rank = -LoadAvg*1e3 + (Memory >= 2048 ? KFlops : .5)',
        'periodic_hold_reason = ifThenElse(JobStatus == 2, "too \\\\ long (h)", "x")',
        'concurrency_limits = licence:2, XSW_sw.a:1.5,other',
        'kill_sig = SIGUSR1',
        'kill_sig = 9',
        'job_max_vacate_time = 600',
        'kill_sig_timeout = 0',
        'prio = -3',
        '+MaxRuntime = JobUniverse + $(ProcId)',
        'request_memory = 2.5 G',
        'gpus_minimum_memory = 4GB',
        'periodic_remove = NumJobStarts > 3 && RemoteWallClockTime > 2 * MaxRuntime || MemoryUsage > RequestMemory',
        'requirements = TARGET.Name != "Alice\'s"',
        'description = a (b [c "d',
        'description = My description',
        'batch_name = batchname',
        'require_gpus = regexp("A100", DeviceName) && Capability >= 7.5',
        'rank = my . RequestMemory + Target . Memory * 2.',
        'kill_sig = sigterm',
        'nice_user = True',
        'concurrency_limits = XSW:2, xsw.a:.5 other,',
        `requirements = ${Array.from({ length: 70 }, (_, at) => `(TARGET.Machine != "b7s${at}p1.cern.ch")`).join(' && ')}`,
        'rank = regexp("^b(6|7)[0-9]+\\\\.", Machine) ? 2 : 0',
      ])
        expect(refused(line), line).to.deep.equal([]);
    });
  });

  describe('ask for what a machine may have, since the sums of all jobs count: ', () => {
    const outside = ['-1', '-0.5', '+-1', '2147483648', '9223372036854775807', '1e9', '1e400'];
    const expressions = ['real("NaN")', 'real("INF")', 'ifThenElse(NumHolds == 1, -1e9, 1)', '1 + 1'];
    const added = ['request_fpgas', '+RequestCpus', 'RequestGpus', 'MY.RequestMemory'];
    const problem = (key: string, value: string) => submitRefusal(key, value, added);

    it('whole numbers of cores, GPUs and what an administrator adds', () => {
      for (const [key, least, most] of [
        ['request_cpus', 1, mostOfJob.cpus],
        ['Request_CPUs', 1, mostOfJob.cpus],
        ['+RequestCpus', 1, mostOfJob.cpus],
        ['request_gpus', 0, mostOfJob.gpus],
        ['RequestGpus', 0, mostOfJob.gpus],
        ['request_fpgas', 0, 1_000_000],
      ] as const) {
        for (const value of [least, most]) expect(problem(key, String(value)), key).to.equal(undefined);
        for (const value of [
          ...[...outside, ...expressions, 'RequestDisk', '$(ProcId)', '1.5', '2K', String(least - 1)],
          String(most + 1),
        ])
          expect(problem(key, value), `${key} ${value}`).to.equal(
            `its value is ${JSON.stringify(value)}; it must be a whole number from ${least} to ${most}`,
          );
      }
    });

    it('so little that the sum over all idle jobs fits in 32 bits', () => {
      const mostIdle = 131_071;
      expect(mostOfJob.cpus * mostIdle).to.be.lessThan(2 ** 31);
      expect((mostOfJob.memory / 4096) * mostIdle).to.be.lessThan(2 ** 31);
    });

    it('memory and disk in the units of HTCondor', () => {
      const memory = ['request_memory', 'MY.RequestMemory', 'retry_request_memory'].concat([
        'retry_request_memory_increase',
        'retry_request_memory_max',
      ]);
      for (const key of memory) {
        for (const value of ['0', '2', '67108864', '64T', '2.5 gb', '65536 GB', '1K'])
          expect(problem(key, value), value).to.equal(undefined);
        for (const value of ['-1', '-0', '-2G', '67108865', '65T', '1P', '2147483648', '9223372036854775807'])
          expect(problem(key, value), value).to.equal(
            `its value is ${JSON.stringify(value)}; it must be from 0 to 67108864 MiB, also with a unit as "2 GB"`,
          );
      }
      for (const key of ['request_disk', 'retry_request_disk']) {
        for (const value of ['0', '2147483648', '1000000000000', '900T', '2 GB'])
          expect(problem(key, value), value).to.equal(undefined);
        for (const value of ['-1', '1000000000001', '1P', '9223372036854775807'])
          expect(problem(key, value), value).to.equal(
            `its value is ${JSON.stringify(value)}; it must be from 0 to 1000000000000 KiB, also with a unit as "2 GB"`,
          );
      }
    });

    it('memory and disk by expressions, which are kept within their range', () => {
      for (const value of [...expressions, '-(1)', '+2', '1e9', '$(ProcId)']) {
        expect(problem('request_memory', value), value).to.equal(undefined);
        expect(boundedValue('request_memory', value)).to.equal(`min({67108864, max({0, (${value})})})`);
        expect(boundedValue('Retry_Request_Disk', value)).to.equal(
          `min({1000000000000, max({0, (${value})})})`,
        );
      }
      for (const [key, value] of [
        ['request_memory', '2 GB'],
        ['request_disk', '5'],
        ['request_cpus', '2'],
        ['rank', '-1 + 1'],
        ['gpus_minimum_memory', '1 + 1'],
      ] as const)
        expect(boundedValue(key, value), key).to.equal(value);
    });
  });

  it('wait a known time: a lease that comes to 0 has a job start and end on its machine without end', () => {
    const added = ['+JobLeaseDuration', 'MaxJobRetirementTime'];
    for (const [key, least] of [
      ['job_lease_duration', 900],
      ['+JobLeaseDuration', 900],
      ['max_job_retirement_time', 0],
      ['MaxJobRetirementTime', 0],
    ] as const) {
      const problem = (value: string) => submitRefusal(key, value, added);
      for (const value of [least, 2400, 86_400]) expect(problem(String(value)), key).to.equal(undefined);
      for (const value of [
        ...['1e300', 'real("NaN")', 'real("INF")', '4294967296', '4294968196', '86401', '-1', '1e3', '20.5'],
        ...[
          'undefined',
          'error',
          '"900"',
          'time()',
          'ifThenElse(JobStatus == 2, 0, 900)',
          '900 s',
          '$(ProcId)',
        ],
      ])
        expect(problem(value), `${key} ${value}`).to.equal(
          `its value is ${JSON.stringify(value)}; it must be a whole number of seconds from ${least} to 86400`,
        );
    }
    expect(submitRefusal('job_lease_duration', '0')).to.match(/whole number of seconds from 900 to 86400$/);
  });

  it('keep a "$" that begins no macro', () => {
    expect(read('requirements = regexp("^a$", Machine)').problems).to.deep.equal([]);
    expect(submitText('regexp("^a$", Machine)')).to.equal('regexp("^a$(DOLLAR)", Machine)');
    expect(submitText('$(ClusterId).$(procid)$')).to.equal('$(ClusterId).$(procid)$(DOLLAR)');
  });

  it('have no macro left but the numbers of the job, whatever the value was', () => {
    const pieces = fc.constantFrom(
      '$',
      '(',
      ')',
      '$$',
      'ENV',
      'DOLLAR',
      'Process',
      'ClusterId',
      'a',
      '[',
      ' ',
      '\\',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (some) => {
        const value = some.join('');
        if (submitRefusal('+WantOS', value) !== undefined) return;
        const left = submitText(value).replaceAll(/\$\((DOLLAR|Cluster|ClusterId|Process|ProcId)\)/gi, '');
        expect(left).to.not.include('$');
      }),
      { numRuns: 2000 },
    );
  });
});

describe('hole 1: htcopts', () => {
  const known = JSON.parse(readFileSync('test/fixtures/htcondor/names.json', 'utf8')) as {
    readonly attributes: readonly string[];
    readonly commands: readonly string[];
  };
  const all = [...known.attributes, ...known.commands];
  const passed = (names: readonly string[]) =>
    [
      ...new Set(
        names.filter((name) => submitRefusal(name, '1') === undefined).map((one) => one.toLowerCase()),
      ),
    ].sort();

  it('of all attributes that HTCondor reads, allows the one alone that names a project', () => {
    expect(all.length).to.be.greaterThan(1400);
    for (const prefix of ['+', 'MY.', 'my.'])
      expect(passed(all.map((name) => prefix + name))).to.deep.equal(
        ['projectname'].map((name) => prefix.toLowerCase() + name),
      );
  });

  it('of all commands that HTCondor reads, allows those of the list alone, each with a reason', () => {
    const { commands } = known;
    const reasons = [...allowedCommands, ...allowedAttributes];
    for (const { why } of reasons) expect(why).to.have.length.greaterThan(20);
    const listed = allowedCommands.flatMap(({ names }) => names);
    expect(passed(all).filter((name) => !listed.includes(name))).to.deep.equal([]);
    const refusals = commands.filter((name) => !listed.includes(name));
    for (const name of refusals) expect(submitRefusal(name, '1'), name).to.match(/^\S.{20}/);
  });

  it('names of the lists stand in the docs', () => {
    const page = readFileSync('docs/htcjob.md', 'utf8');
    const names = [...allowedCommands, ...allowedAttributes].flatMap((one) => one.names);
    expect(
      names.filter((name) => !page.includes(`\`${name}\``) && !page.includes(`\`+${name}\``)),
    ).to.deep.equal([]);
  });

  it('takes names that an administrator adds, in any case, and says of each what it may do', () => {
    const added = ['+MyTag', 'request_fpgas', '+OtherJobRemoveRequirements'];
    const { commands, problems } = readSubmitCommands('my.mytag = 1\nrequest_fpgas = 2\n+Other = 1', added);
    expect(commands).to.deep.equal({ 'my.mytag': '1', request_fpgas: '2' });
    expect(problems.map(({ line }) => line)).to.deep.equal([3]);
    const [tag, fpgas, other] = addedNameProblems(added);
    expect(tag).to.include({
      pointer: '/submitCommands/0',
      severity: 'warning',
      code: 'submit-command-added',
    });
    expect(tag?.message).to.include(
      'thresher does not know what HTCondor or the daemons of your pool do with it',
    );
    expect(fpgas?.message).to.include('"request_fpgas"');
    expect(other?.message).to.include('removes other jobs of the schedd');
  });

  it('lets nobody add what thresher writes itself', () => {
    for (const name of [
      'queue',
      'executable',
      'transfer_input_files',
      'include',
      '+ThresherWorker',
      '+harvesterID',
      'a b',
    ]) {
      const [problem] = addedNameProblems([name]);
      expect(problem?.message, name).to.match(/it cannot be allowed|is no name/);
      expect(submitRefusal(name, '1', [name]), name).to.not.equal(undefined);
    }
  });

  it('tells names that are on no list from those that are, and from patterns', () => {
    expect(
      namesBeyondLists(['*', 'request_*', '+MaxRuntime', 'my.maxruntime', 'rank', '+MyTag']),
    ).to.deep.equal(['+MyTag']);
  });

  it('hole 8: are read to their first mistakes: each of thirty thousand lines may have one', () => {
    const { problems } = readSubmitCommands('a\n'.repeat(30_000));
    expect(problems.map(({ line }) => line)).to.deep.equal(Array.from({ length: 20 }, (_, at) => at + 1));
  });
});
