import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { expect } from 'chai';
import { writeEntryLines } from '../../src/config/cric/entry-lines.ts';
import { runHere } from '../support/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

type Json = Record<string, unknown>;

let directory: string;
let settings: string;
let queueFile: string;

const harvesters = (kind: string, module: string, name: string) => ({
  module: `pandaharvester.harvester${kind}.${module}`,
  name,
});
const local = (name: string): Json => ({ name, module: 'thresher/local' });
const good = (): Json => ({
  maxWorkers: 3,
  mapType: 'NoJob',
  submitter: local('LocalSubmitter'),
  monitor: local('LocalMonitor'),
  sweeper: local('LocalSweeper'),
});
const htcondor = (): Json => ({
  ...good(),
  submitter: {
    ...harvesters('submitter', 'htcondor_submitter', 'HTCondorSubmitter'),
    templateFile: 'there.sdf',
  },
  monitor: harvesters('monitor', 'htcondor_monitor', 'HTCondorMonitor'),
  sweeper: harvesters('sweeper', 'htcondor_sweeper', 'HTCondorSweeper'),
});
const slurm = (): Json => ({
  ...good(),
  submitter: {
    ...harvesters('submitter', 'slurm_submitter', 'SlurmSubmitter'),
    templateFile: 'there.sdf',
  },
  monitor: harvesters('monitor', 'slurm_monitor', 'SlurmMonitor'),
  sweeper: harvesters('sweeper', 'slurm_sweeper', 'SlurmSweeper'),
});

function write(queues: Json, own: Json = {}): void {
  writeFileSync(queueFile, JSON.stringify(queues, null, 1));
  writeFileSync(settings, JSON.stringify({ master: { stateDir: 'state' }, ...own }));
}

const check = (...args: string[]) => runHere('--config', settings, 'check-config', ...args);

/** Without the directory, which is another one every time. */
async function linesOf(...args: string[]): Promise<string[]> {
  const { stdout } = await check(...args);
  const text = stdout
    .replaceAll(`${directory}/`, '')
    .replaceAll(`${relative(process.cwd(), directory)}/`, '');
  return text.trimEnd().split('\n');
}

describe('check-config', () => {
  beforeEach(() => {
    directory = temporaryDirectory();
    settings = join(directory, 'thresher.yaml');
    queueFile = join(directory, 'panda_queueconfig.json');
    writeFileSync(join(directory, 'there.sdf'), '');
    writeFileSync(join(directory, 'token'), 'secret\n');
  });

  it('warns of an option that gives containers of Pods capabilities, where the settings name it', async () => {
    write({ Q: good() }, { sources: { interlink: { runtimeOptions: ['--nv', '--fakeroot=true'] } } });
    expect((await linesOf())[0]).to.equal(
      'thresher.yaml:1 /sources/interlink/runtimeOptions/1: warning: --fakeroot gives containers of Pods capabilities: no mount is for reading only to them [interlink-capabilities]',
    );
    write({ Q: good() }, { sources: { interlink: { runtimeOptions: ['--nv'] } } });
    expect((await linesOf()).join()).to.not.contain('interlink');
  });

  it('and explain show no login of the settings that CRIC sent back, in a file that was kept before', async () => {
    const password = 'Zq7Hunter-9xKw2-shown';
    const file = join(directory, 'state/cache/panda_queues.json');
    mkdirSync(join(directory, 'state/cache'), { recursive: true });
    const entry = (name: string) => ({
      panda_resource: name,
      status: 'online',
      corecount: password,
      maxrss: password,
      pilot_version: password,
      params: { maxWorkers: password, [`jdl.plusattr.${password}`]: 'x' },
    });
    const ours = { pilot_manager: 'Harvester', harvester: 'us', harvester_template: 'T' };
    const named = (name: string) => [name, { ...entry(name), ...ours }] as const;
    const entries = [['Q', entry('Q')] as const, ['H', entry('H')] as const, named(password), named('NEW')];
    writeFileSync(file, writeEntryLines(new Map<string, Json>(entries)));
    const { submitter, ...rest } = htcondor();
    const H = { ...rest, submitter: { ...(submitter as Json), useCRIC: true } };
    const url = `http://bob:${password}@127.0.0.1:1/json`;
    write(
      { Q: good(), H, T: { ...good(), isTemplateQueue: true } },
      {
        master: { stateDir: 'state', harvester_id: 'us' },
        qconf: { queueList: ['DYNAMIC', 'Q'], configFromCacher: true },
        cacher: { data: [`panda_queues.json||${url}`, `queues_config_file||${url}`] },
      },
    );
    const remote = { REMOTE: good(), [`R-${password}`]: good() };
    writeFileSync(join(directory, 'state/cache/queues_config_file'), JSON.stringify(remote));
    const shown: string[] = [];
    for (const more of [[], ['--output', 'json']])
      for (const command of [['check-config'], ['check-config', 'H'], ['explain', 'Q'], ['explain', 'H']]) {
        const { stdout, stderr } = await runHere('--config', settings, ...command, ...more);
        shown.push(stdout);
        expect(stdout + stderr, [...command, ...more].join(' ')).not.to.include('Hunter');
        if (more.length > 0) JSON.parse(stdout);
      }
    expect(shown[0]).to.match(/corecount is "\(hidden\)"/);
    expect(shown[0]).to.match(
      /login of ours is in the name of an entry, which is left out: \(hidden\).*\[cache-login\]/,
    );
    expect(shown[0]).to.match(/queues_config_file: .*left out: R-\(hidden\).*\[cache-login\]/);
    for (const queue of ['NEW', 'REMOTE']) expect(shown[0]).to.match(new RegExp(`^${queue} +ready`, 'm'));
    expect(shown[0]).to.match(/^4 queues: /m);
  });

  /** What a queue has otherwise than a good one, its state, and the message without place. */
  const cases: [what: string, queue: () => Json, state: string, messages: string[]][] = [
    ['a good queue', good, 'ready', []],
    [
      'plugins that Harvester has and thresher lacks',
      slurm,
      'incomplete',
      [
        'error: SlurmSubmitter is a submitter of Harvester that thresher does not have yet [plugin-not-there]',
        'error: SlurmMonitor is a monitor of Harvester that thresher does not have yet [plugin-not-there]',
        'error: SlurmSweeper is a sweeper of Harvester that thresher does not have yet [plugin-not-there]',
      ],
    ],
    [
      'a plugin that Harvester dropped',
      () => ({ ...good(), submitter: harvesters('submitter', 'cloud_google_submitter', 'GoogleSubmitter') }),
      'incomplete',
      [
        'error: GoogleSubmitter is a submitter that Harvester dropped; thresher has none in its place [plugin-dropped]',
      ],
    ],
    [
      'a slip in the name of a plugin of Harvester',
      () => ({ ...good(), submitter: harvesters('submitter', 'htcondor_submitter', 'HTCondorSubmiter') }),
      'incomplete',
      [
        'error: no submitter is called HTCondorSubmiter of pandaharvester.harvestersubmitter.htcondor_submitter; did you mean HTCondorSubmitter of pandaharvester.harvestersubmitter.htcondor_submitter? [plugin-not-there]',
      ],
    ],
    [
      'a slip in its module',
      () => ({ ...good(), submitter: harvesters('submitter', 'htcondor_submiter', 'HTCondorSubmitter') }),
      'incomplete',
      [
        'error: no submitter is called HTCondorSubmitter of pandaharvester.harvestersubmitter.htcondor_submiter; did you mean HTCondorSubmitter of pandaharvester.harvestersubmitter.htcondor_submitter? [plugin-not-there]',
      ],
    ],
    [
      'a slip in what looks like the module of a third party',
      () => ({ ...good(), monitor: { module: 'tresher/local', name: 'LocalMonitor' } }),
      'refused',
      [
        'error: no monitor is called LocalMonitor of tresher/local; did you mean LocalMonitor of thresher/local? [unknown-plugin]',
      ],
    ],
    [
      'a stager in the place of the preparator',
      () => ({ ...good(), preparator: harvesters('stager', 'dummy_stager', 'DummyStager') }),
      'refused',
      [
        'error: DummyStager of pandaharvester.harvesterstager.dummy_stager is a stager, not a preparator [unknown-plugin]',
      ],
    ],
    [
      'a stager that a pull queue does not need',
      () => ({ ...good(), stager: harvesters('stager', 'rucio_stager', 'RucioStager') }),
      'ready',
      [
        'notice: RucioStager is not needed and ignored: pilots of a pull queue (mapType NoJob) move their data themselves [plugin-not-needed]',
      ],
    ],
    [
      'the same on a push queue',
      () => ({ ...good(), mapType: 'OneToOne', stager: harvesters('stager', 'rucio_stager', 'RucioStager') }),
      'incomplete',
      ['error: RucioStager is a stager of Harvester that thresher does not have yet [plugin-not-there]'],
    ],
    [
      'a zipper on a push queue, and one that does nothing',
      () => ({
        ...good(),
        mapType: 'OneToOne',
        zipper: harvesters('zipper', 'ssh_zipper', 'SshZipper'),
        stager: harvesters('stager', 'dummy_bulk_stager', 'DummyBulkStager'),
      }),
      'incomplete',
      ['error: SshZipper is a zipper of Harvester that thresher does not have yet [plugin-not-there]'],
    ],
    [
      "an extractor that no list of Harvester's plugins has",
      () => ({ ...good(), extractor: harvesters('extractor', 'x_extractor', 'XExtractor') }),
      'incomplete',
      [
        'error: no extractor is called XExtractor of pandaharvester.harvesterextractor.x_extractor; there are none [plugin-not-there]',
      ],
    ],
    [
      'a misspelt limit',
      () => ({ ...good(), maxWorkers: undefined, maxWorker: 3 }),
      'ready',
      [
        'warning: neither thresher nor Harvester reads "maxWorker"; did you mean "maxWorkers"? [unread-option]',
      ],
    ],
    [
      'a limit that was put aside under another name',
      () => ({ ...good(), maxWorkers1: 3 }),
      'ready',
      ['notice: neither thresher nor Harvester reads "maxWorkers1" [unread-option]'],
    ],
    [
      'a misspelt option of a plugin',
      () => ({ ...good(), submitter: { ...local('LocalSubmitter'), maxSlot: 4 } }),
      'ready',
      ['warning: LocalSubmitter does not read "maxSlot"; did you mean "maxSlots"? [unread-option]'],
    ],
    [
      'a misspelt option in common',
      () => ({ ...good(), common: { workDirr: 'x' } }),
      'ready',
      ['warning: no plugin of this queue reads "workDirr"; did you mean "workDir"? [unread-option]'],
    ],
    [
      'an option in common that only a credential manager refers to',
      () => ({
        ...good(),
        common: { proxy: '/no-proxy' },
        credmanagers: [
          { module: 'thresher/credentials', name: 'FileCredManager', files: ['${common.proxy}'] },
        ],
      }),
      'ready',
      [],
    ],
    [
      'a credential manager that the site has not filled in yet',
      () => ({
        ...good(),
        common: { cert: '/path_to/FIXME_cert' },
        credmanagers: [
          { ...harvesters('credmanager', 'FIXME', 'FIXME'), inCertFile: '${common.cert}' },
          { module: 'thresher/credentials', name: 'FileCredManager', files: ['/no-proxy'] },
        ],
      }),
      'ready',
      [
        'warning: a credential manager is still to fill in, and it does not run until then: FIXME (module, name, inCertFile); write the values of your site in place of FIXME, or remove the entries [template-placeholder]',
      ],
    ],
    [
      'a credential manager with a slip',
      () => ({
        ...good(),
        credmanagers: [harvesters('credmanager', 'no_voms_cred_manager', 'NoVomCredManager')],
      }),
      'incomplete',
      [
        'error: no credmanager is called NoVomCredManager of pandaharvester.harvestercredmanager.no_voms_cred_manager; did you mean NoVomsCredManager of pandaharvester.harvestercredmanager.no_voms_cred_manager? [plugin-not-there]',
      ],
    ],
    [
      "a credential manager of Harvester's that thresher lacks",
      () => ({
        ...good(),
        credmanagers: [harvesters('credmanager', 'grid_cred_manager', 'GridCredManager')],
      }),
      'incomplete',
      [
        'error: GridCredManager is a credmanager of Harvester that thresher does not have yet [plugin-not-there]',
      ],
    ],
    [
      'a credential manager that needs a PanDA server, which the settings do not name',
      () => ({
        ...good(),
        credmanagers: [
          {
            ...harvesters('credmanager', 'token_key_cred_manager', 'TokenKeyCredManager'),
            client_name: 'pilot',
            token_key_file: '/key',
          },
        ],
      }),
      'incomplete',
      [
        'error: TokenKeyCredManager asks the PanDA server, and the settings name none with a login: in pandacon set server_api_url_ssl, and cert_file and key_file, or auth_type: oidc with auth_token and auth_origin [panda-server-off]',
      ],
    ],
    [
      'credential managers that are no list',
      () => ({ ...good(), credmanagers: { name: 'x' } }),
      'refused',
      ['error: credmanagers must be a list [ ... ] [wrong-type]'],
    ],
    [
      'a placeholder that does not exist',
      () => ({
        ...good(),
        messenger: {
          ...harvesters('messenger', 'shared_file_messenger', 'SharedFileMessenger'),
          accessPoint: '/x/${computingSte}/${else}/${_workerID_1.0}/$${literal}/${harvesterID}-${workerID}',
        },
      }),
      'ready',
      [
        'warning: "${computingSte}" in accessPoint is not a placeholder and stays as it is written; did you mean "computingSite"? [unknown-placeholder]',
        'warning: "${else}" in accessPoint is not a placeholder and stays as it is written; there are workerID, harvesterID, computingSite,',
      ],
    ],
    [
      'an option that Harvester reads from the submitter, whatever its plugin',
      () => ({
        ...good(),
        submitter: { ...local('LocalSubmitter'), logBaseURL: 'https://x', ceEndpoint: 'x' },
      }),
      'ready',
      [
        'notice: submitter.logBaseURL has no effect: this backend makes no addresses of logs [option-without-effect]',
        'notice: submitter.ceEndpoint has no effect: only the HTCondor backend sends workers to computing elements [option-without-effect]',
      ],
    ],
    [
      'keys that only jobs of push queues have a use for',
      () => ({
        ...good(),
        useJobLateBinding: true,
        getJobCriteria: 'a=b',
        prefetchEvents: false,
        workerMaker: {
          ...harvesters('workermaker', 'simple_worker_maker', 'SimpleWorkerMaker'),
          nJobsPerWorker: 2,
        },
      }),
      'ready',
      [
        'notice: useJobLateBinding has no effect: it is for the jobs of push queues, and thresher takes no jobs yet [option-without-effect]',
        'notice: getJobCriteria has no effect: it is for the jobs of push queues, and thresher takes no jobs yet [option-without-effect]',
        'notice: workerMaker.nJobsPerWorker has no effect: it is for the jobs of push queues, and thresher takes no jobs yet [option-without-effect]',
      ],
    ],
    [
      'options whose loss makes the queue another one',
      () => ({
        ...good(),
        file_syncer: [{ module: 'm', name: 'n' }],
        submitter: { ...local('LocalSubmitter'), noPilotsWhenNoActiveJobs: true },
      }),
      'ready',
      [
        'warning: submitter.noPilotsWhenNoActiveJobs has no effect: demand is fill, which counts no jobs; name the source of the PanDA server as demand, which gives a queue without activated jobs no workers [option-without-effect]',
        'warning: file_syncer has no effect: thresher fetches no files from git: keep them up to date by other means [option-without-effect]',
      ],
    ],
    [
      'a flag that is off',
      () => ({
        ...good(),
        useJobLateBinding: false,
        submitter: { ...local('LocalSubmitter'), noPilotsWhenNoActiveJobs: false },
      }),
      'ready',
      [],
    ],
    [
      'a middleware on a plugin that thresher has, and one that the queue lacks',
      () => ({
        ...good(),
        rpc: { name: 'RpcHerder', module: 'pandaharvester.harvestermiddleware.rpc_herder' },
        submitter: { ...local('LocalSubmitter'), middleware: 'rpc' },
        monitor: { ...local('LocalMonitor'), middleware: 'ssh' },
      }),
      'ready',
      [
        'warning: submitter.middleware has no effect: thresher has no middleware: where Harvester works through "rpc", thresher works on this machine [option-without-effect]',
        'notice: monitor.middleware has no effect: the queue has no block "ssh" [option-without-effect]',
        'notice: rpc has no effect: it is the middleware of submitter, and thresher has none [option-without-effect]',
      ],
    ],
    [
      'a key deep inside an option',
      () => ({
        ...good(),
        throttler: {
          name: 'SimpleThrottler',
          module: 'thresher/throttlers',
          rulesForMissed: [{ level: 'pq', timeWindow: 1, maxMissed: 1, levle: 'site' }],
        },
      }),
      'ready',
      ['notice: SimpleThrottler does not read "levle" [unread-option]'],
    ],
    [
      'a third party without a file behind it',
      () => ({ ...good(), sweeper: { module: './gone.mjs', name: 'Own' } }),
      'refused',
      ['error: the module ./gone.mjs could not be used: Cannot find module'],
    ],
  ];
  for (const [what, queue, state, messages] of cases) {
    it(`check-config reports a queue with ${what} as ${state}`, async () => {
      write({ Q: queue() });
      const [first, ...rest] = await linesOf('Q');
      expect(first).to.match(new RegExp(`^Q  ${state}`));
      const found = rest.slice(0, -1).map((line) => line.replace(/^ +\S+:\d+ \S+: /, ''));
      expect(found).to.have.length(messages.length);
      for (const [at, message] of messages.entries()) expect(found[at]).to.contain(message);
      expect((await check('Q')).status).to.equal(state === 'ready' ? 0 : 1);
    });
  }

  /** Two queues of one template, with an option that does nothing in the template and one in each queue. */
  const ofOneTemplate = (): Json => {
    const { maxWorkers, ...rest } = good();
    return {
      X_TEMPLATE: { ...rest, truePilot: true, seen: 1 },
      A: { templateQueueName: 'X_TEMPLATE', maxWorkers, getJobCriteria: 'a=b' },
      B: { templateQueueName: 'X_TEMPLATE', maxWorkers, getJobCriteria: 'a=b' },
    };
  };

  it('check-config prints one line for an option without effect, with all of its lines', async () => {
    write(ofOneTemplate());
    const lines = (await linesOf()).filter((line) => /has no effect|reads "/.test(line));
    expect(lines.map((line) => line.replace(/^\S+:\d+ /, ''))).to.deep.equal([
      '/X_TEMPLATE/truePilot: notice: truePilot has no effect: it says who reports the state of jobs; here the pilots do [option-without-effect]',
      '/X_TEMPLATE/seen: notice: neither thresher nor Harvester reads "seen" [unread-option]',
      expectedAlso(),
    ]);
  });

  function expectedAlso(): string {
    const text = readFileSync(queueFile, 'utf8').split('\n');
    const second = text.findLastIndex((line) => line.includes('getJobCriteria')) + 1;
    return `/A/getJobCriteria: notice: getJobCriteria has no effect: it is for the jobs of push queues, and thresher takes no jobs yet; also on line ${second} [option-without-effect]`;
  }

  it('shows a notice of a template once, and not with each queue that uses it', async () => {
    write(ofOneTemplate());
    const entries = JSON.parse((await check('--output', 'json')).stdout) as {
      readonly queue: string | null;
      readonly problems: readonly { readonly pointer: string }[];
    }[];
    const pointers = entries.map(({ queue, problems }) => [queue, problems.map(({ pointer }) => pointer)]);
    expect(pointers).to.deep.equal([
      [null, ['/X_TEMPLATE/truePilot', '/X_TEMPLATE/seen']],
      ['A', ['/A/getJobCriteria']],
      ['B', ['/B/getJobCriteria']],
    ]);
  });

  it('checks each template of a file without queues as a queue that used it', async () => {
    write({ X_TEMPLATE: good(), Y_TEMPLATE: { ...good(), maxWorkers: 'many', truePilot: true } });
    const { status } = await check();
    const lines = await linesOf();
    expect(status).to.equal(1);
    expect(lines.join('\n'))
      .to.match(/^X_TEMPLATE {2}ready +submits nothing: a template, checked as a queue that used it$/m)
      .and.to.match(/^Y_TEMPLATE {2}refused +\(a template, checked as a queue that used it\)$/m)
      .and.to.match(/\/Y_TEMPLATE\/maxWorkers: error: maxWorkers is "many"/)
      .and.to.match(/\/Y_TEMPLATE\/truePilot: notice: truePilot has no effect/)
      .and.to.match(/^0 queues; 1 error, .*; 2 templates: 1 ready, 0 incomplete, 1 refused$/m);
  });

  it('names files that are missing, counted from the queue file, and those that are of the wrong kind', async () => {
    mkdirSync(join(directory, 'directory'));
    const { submitter, ...rest } = htcondor();
    const messages = async (paths: Json) => {
      write({ Q: { ...rest, submitter: { ...(submitter as Json), ...paths } } });
      const lines = (await linesOf('Q')).filter((line) => /template|executable|Token|token|x509/.test(line));
      return lines.map((line) => line.replace(/^ +\S+:\d+ /, ''));
    };
    const found = await messages({
      templateFile: 'gone.sdf',
      executableFile: 'directory',
      tokenDir: '',
      x509UserProxy: 'proxy',
      pandaTokenDir: 'there.sdf',
    });
    expect(found).to.have.members([
      '/Q/submitter/templateFile: error: gone.sdf: cannot read the file: ENOENT: no such file or directory [file-unreadable]',
      '/Q/submitter/executableFile: error: directory of executableFile is a directory; it must be a file [wrong-type]',
      '/Q/submitter/pandaTokenDir: error: there.sdf of pandaTokenDir is a file; it must be a directory [wrong-type]',
      '/Q/submitter/x509UserProxy: warning: the file proxy of x509UserProxy does not exist: write it, or name the right one [file-unreadable]',
    ]);
    expect(await messages({ x509UserProxy: 5 })).to.deep.equal([
      '/Q/submitter/x509UserProxy: error: x509UserProxy is 5; it must be a string [wrong-type]',
    ]);
    expect((await linesOf('Q'))[0]).to.equal('Q  refused');
  });

  it('check-config says why a ready queue would submit nothing', async () => {
    const changes: Json = {
      OFFLINE: { queueStatus: 'offline' },
      PUSH: { mapType: 'OneToOne' },
      SLAVE: { runMode: 'slave' },
      NONE: { demand: 'none' },
      ZERO: { maxWorkers: 0 },
      UNSET: { maxWorkers: undefined },
      STILL: { nQueueLimitWorker: 0 },
    };
    write(
      Object.fromEntries(
        Object.entries(changes).map(([name, change]) => [name, { ...good(), ...(change as Json) }]),
      ),
    );
    expect((await linesOf()).slice(0, -1)).to.deep.equal([
      'OFFLINE  ready       submits nothing: queueStatus is offline: set it to "online" for new workers',
      'PUSH     ready       submits nothing: mapType is OneToOne: its workers need jobs from the PanDA server, which thresher does not fetch; set it to "NoJob" where pilots fetch their own',
      'SLAVE    ready       submits nothing: runMode is slave: the PanDA server sets the number of workers, by the source panda; `thresher panda` shows what the link to it lacks; set runMode to "self" to fill the queue without',
      'NONE     ready       submits nothing: demand is none: nothing asks for workers; set demand to "fill" in the queue, or submitter.defaultDemand to "fill" in the settings',
      'ZERO     ready       submits nothing: maxWorkers is 0: set it above 0',
      'UNSET    ready       submits nothing: maxWorkers is not set, which counts as 0: set it to how many may be alive',
      'STILL    ready       submits nothing: nQueueLimitWorker is 0: set it above 0',
    ]);
  });

  it('prints one line for each, and nothing that steers a terminal, whatever a name or a key holds', async () => {
    write({ 'a\nb\u001b[31m': { ...good(), 'x\r\u009b': 1 }, 'c\n': { maxWorkers: 'x' }, '\u0007': 5 });
    for (const names of [[], ['a\nb\u001b[31m'], ['\u001b\n']]) {
      const { stdout, stderr } = await check(...names);
      expect(`${stdout}${stderr}`.replaceAll('\n', '')).not.to.match(/[\u0000-\u001f\u007f-\u009f]/);
    }
    expect(await linesOf()).to.include('a b [31m  ready');
    const explained = await runHere('--config', settings, 'explain', 'a\nb\u001b[31m');
    expect(explained.stdout.split('\n')[0]).to.equal('a b [31m');
    expect(explained.stdout).not.to.contain('\u001b');
  });

  it('check-config reports only the fault of a module that cannot be imported', async () => {
    write({ Q: { ...good(), sweeper: { module: 'no-such-package', name: 'Own' } } });
    expect((await linesOf('Q')).slice(1, -1)).to.deep.equal([
      "  panda_queueconfig.json:14 /Q/sweeper/module: error: the module no-such-package could not be used: Cannot find module 'no-such-package' [plugin-not-loaded]",
    ]);
  });

  it('refuses a queue without a name', async () => {
    write({ '': good(), Q: good() });
    expect((await linesOf()).slice(0, -1)).to.deep.equal([
      'Q  ready',
      '   refused',
      '  panda_queueconfig.json:2 /: error: the name of the queue is empty; it must be that of a PanDA queue [wrong-type]',
    ]);
  });

  it('prints the worst last, and then the sum', async () => {
    write({ BAD: { ...good(), maxWorkers: '3' }, MISSES: slurm(), GOOD: good(), X_TEMPLATE: {} });
    const lines = await linesOf();
    expect(lines.filter((line) => !line.startsWith(' '))).to.deep.equal([
      'GOOD    ready',
      'MISSES  incomplete',
      'BAD     refused',
      '3 queues: 1 ready, 1 incomplete, 1 refused; 4 errors, 0 warnings, 0 notices',
    ]);
    expect(lines[2]).to.equal(
      '  panda_queueconfig.json:23 /MISSES/submitter/name: error: thresher does not have yet: SlurmSubmitter (line 23), SlurmMonitor (line 28), SlurmSweeper (line 32) [plugin-not-there]',
    );
  });

  it('says a warning that is equal in 48 queues once, with its first lines and their number, and in full of a queue that is named', async () => {
    const manager = { module: 'FIXME_module', name: 'FIXME_name' };
    const queues = (count: number) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, at) => [`Q${at}`, { ...good(), credmanagers: [manager] }]),
      );
    write(queues(48));
    const lines = (await linesOf()).filter((line) => line.includes('still to fill in'));
    expect(lines).to.have.length(1);
    expect(lines[0]).to.match(
      /^panda_queueconfig\.json:18 \/Q0\/credmanagers\/0: warning: .*; also on lines 40, 62, 84, 106, 128 and 42 more \[template-placeholder\]$/,
    );
    const alone = await linesOf('Q7');
    expect(alone.filter((line) => line.includes('still to fill in'))).to.have.length(1);
    write(queues(3));
    const few = (await linesOf()).filter((line) => line.includes('still to fill in'));
    expect(few.map((line) => /\/Q\d/.exec(line)?.[0])).to.deep.equal(['/Q0', '/Q1', '/Q2']);
  });

  it('names plugins that Harvester dropped as such, also several together', async () => {
    const google = (kind: string) =>
      harvesters(kind, `cloud_google_${kind}`, `Google${kind[0]?.toUpperCase() ?? ''}${kind.slice(1)}`);
    const { name, module } = google('monitor');
    write({ Q: { ...good(), submitter: google('submitter'), monitor: { name, module } } });
    const [, line] = await linesOf();
    expect(line).to.match(
      /error: dropped by Harvester, with none in their place: GoogleSubmitter \(line \d+\), GoogleMonitor \(line \d+\) \[plugin-dropped\]$/,
    );
  });

  it('prints as JSON what belongs to the file first, and then each queue', async () => {
    write({ BAD: { ...good(), maxWorkers: '3' }, GOOD: good() }, { qconf: { queueList: ['ALL', 'GONE'] } });
    const { stdout, status } = await check('--output', 'json');
    expect(status).to.equal(1);
    expect(JSON.parse(stdout)).to.deep.equal([
      {
        queue: null,
        state: null,
        writes: [],
        problems: [
          {
            file: settings,
            pointer: '/qconf/queueList/1',
            line: 1,
            severity: 'warning',
            code: 'unknown-queue',
            message: `qconf.queueList names "GONE", which is no queue of ${queueFile}`,
          },
        ],
      },
      {
        queue: 'BAD',
        state: 'refused',
        problems: [
          {
            file: queueFile,
            pointer: '/BAD/maxWorkers',
            line: 3,
            severity: 'error',
            code: 'wrong-type',
            message: 'maxWorkers is "3"; it must be an integer: write 3 without quotes',
          },
        ],
      },
      { queue: 'GOOD', state: 'ready', problems: [] },
    ]);
  });

  it('places a name that no queue has in the settings, with what it may have been meant to be', async () => {
    write({ SITE_4G: good(), X_TEMPLATE: {} });
    writeFileSync(
      settings,
      'qconf:\n  queueList:\n    - SITE_4G\n    - SITE_4\n    - X_TEMPLATE\n    - ELSE\n',
    );
    expect((await linesOf()).slice(0, 3)).to.deep.equal([
      'thresher.yaml:4 /qconf/queueList/1: warning: qconf.queueList names "SITE_4", which is no queue of panda_queueconfig.json; did you mean SITE_4G? [unknown-queue]',
      'thresher.yaml:5 /qconf/queueList/2: warning: qconf.queueList names "X_TEMPLATE", which is no queue of panda_queueconfig.json: it is a template there [unknown-queue]',
      'thresher.yaml:6 /qconf/queueList/3: warning: qconf.queueList names "ELSE", which is no queue of panda_queueconfig.json [unknown-queue]',
    ]);
  });

  it("check-config names in one line the settings of Harvester's file without effect, and its errors last", async () => {
    const cfg = resolve(import.meta.dirname, '../fixtures/harvester/panda_harvester.cfg');
    const { stdout, status } = await runHere('--config', cfg, 'check-config');
    expect(status).to.equal(1);
    const lines = stdout.trimEnd().split('\n');
    expect(lines[0]).to.match(
      /panda_harvester\.cfg: notice: thresher does not read \d+ sections and \d+ keys, which have no effect: .*\[db\].* \[unread-setting\]$/,
    );
    expect(lines.filter((line) => line.includes('[unread-setting]'))).to.have.length(1);
    expect(lines.slice(-4, -1).every((line) => /: error: .*\[template-placeholder\]$/.test(line))).to.equal(
      true,
    );
    const json = JSON.parse((await runHere('--config', cfg, 'check-config', '--output', 'json')).stdout) as [
      { problems: Json[] },
    ];
    expect(json[0].problems.filter(({ code }) => code === 'unread-setting')).to.have.length.above(20);
  });

  it('ends with 1 for an error, with --strict for a warning too, and never for a notice', async () => {
    const status = async (queue: Json, ...args: string[]) => {
      write({ Q: { ...good(), ...queue } });
      return (await check(...args)).status;
    };
    expect(await status({ site: 'X' }, '--strict')).to.equal(0);
    expect(await status({ maxWorker: 3, maxWorkers: undefined })).to.equal(0);
    expect(await status({ maxWorker: 3, maxWorkers: undefined }, '--strict')).to.equal(1);
    expect(await status({ maxWorkers: '3' })).to.equal(1);
  });

  it('judges only the queues that are asked for, listed or not', async () => {
    write({ A: good(), B: { ...good(), maxWorkers: 'x' }, C: htcondor() }, { qconf: { queueList: ['A'] } });
    expect(await linesOf()).to.deep.equal([
      'A  ready',
      '1 queue: 1 ready, 0 incomplete, 0 refused; 0 errors, 0 warnings, 0 notices; 2 more not in qconf.queueList',
    ]);
    expect((await check('A')).status).to.equal(0);
    expect((await linesOf('B', 'B'))[0]).to.equal('B  refused     (not in qconf.queueList)');
  });

  it('has an answer to a queue that is not there, to a template, and to wrong use', async () => {
    write({ SITE_4G: good(), SITE_8G: good(), X_TEMPLATE: {} });
    const wrong = await check('SITE_4', 'X_TEMPLATE');
    expect(wrong).to.deep.equal({
      status: 1,
      stdout: '',
      stderr:
        `thresher: there is no queue SITE_4 in ${queueFile}; did you mean SITE_4G, SITE_8G? [no-such-queue]\n` +
        `thresher: X_TEMPLATE is a template in ${queueFile}: it is checked with each of its queues [no-such-queue]\n`,
    });
    expect((await check('--output', 'xml')).status).to.equal(2);
    expect((await check('--strikt')).status).to.equal(2);
  });

  it('shows mistakes in the settings and files that cannot be read, as text and as JSON', async () => {
    writeFileSync(settings, 'qconfig: {}\n');
    const { status, stdout } = await check();
    expect(status).to.equal(1);
    expect(stdout).to.match(
      /thresher\.yaml:1 \/qconfig: error: "qconfig" is not a known setting here; there are master, database, qconf, .* \[unknown-setting\]\nno queue could be read; 1 error, /,
    );
    const json = JSON.parse((await check('--output', 'json')).stdout) as Json[];
    expect(json.map(({ queue, state }) => [queue, state])).to.deep.equal([[null, null]]);
    writeFileSync(settings, '{}');
    for (const [text, says] of [
      [undefined, /cannot read the file: ENOENT/],
      ['{ "Q": ', /:1 \/Q: error: not valid JSON/],
      ['[]', /must be an object/],
    ] as const) {
      if (text !== undefined) writeFileSync(queueFile, text);
      const broken = await check('Q');
      expect(broken.status).to.equal(1);
      expect(broken.stdout).to.match(says).and.to.contain('no queue could be read');
    }
  });

  const startless: [what: string, own: Json, problem: string][] = [
    [
      'an address for all machines without a token',
      { http: { host: '0.0.0.0' } },
      '/http/host: error: http.host in thresher.yaml is 0.0.0.0, which other machines can reach: set http.tokenFile to a file with a token, or http.host to 127.0.0.1 [http-token-missing]',
    ],
    [
      'a name without a token',
      { http: { host: 'nosuch.host.invalid' } },
      '/http/host: error: http.host in thresher.yaml is nosuch.host.invalid, a name that other machines may reach: set http.tokenFile to a file with a token, or http.host to 127.0.0.1 [http-token-missing]',
    ],
    [
      'a token that is not there',
      { http: { tokenFile: 'gone' } },
      '/http/tokenFile: error: http.tokenFile gone: cannot read the file: ENOENT: no such file or directory; it must hold the token, in one line [http-token-unreadable]',
    ],
    [
      'a token for writing that is not there',
      { http: { writeTokenFile: 'gone' } },
      '/http/writeTokenFile: error: http.writeTokenFile gone: cannot read the file: ENOENT: no such file or directory; it must hold the token, in one line [http-token-unreadable]',
    ],
    [
      'one token for reading and for writing',
      { http: { tokenFile: 'token', writeTokenFile: 'token' } },
      '/http/writeTokenFile: error: http.writeTokenFile holds the token of http.tokenFile, which may only read; write another one [http-tokens-same]',
    ],
    [
      'a state directory that is a file',
      { master: { stateDir: 'there.sdf' } },
      '/master/stateDir: error: the state directory there.sdf cannot be used: there.sdf is not a directory [state-dir-unusable]',
    ],
    [
      'a state directory below a file',
      { master: { stateDir: 'there.sdf/a/b' } },
      '/master/stateDir: error: the state directory there.sdf/a/b cannot be used: there.sdf is not a directory [state-dir-unusable]',
    ],
    [
      'a log that is a directory',
      { log: { file: '.' } },
      '/log/file: error: the log DIRECTORY cannot be opened: DIRECTORY is a directory [log-file-unusable]',
    ],
    [
      'a log below a file',
      { log: { file: 'there.sdf/log' } },
      '/log/file: error: the log there.sdf/log cannot be opened: there.sdf is not a directory [log-file-unusable]',
    ],
  ];
  for (const [what, own, problem] of startless) {
    it(`finds what the daemon would not start for: ${what}`, async () => {
      write({ Q: good() }, own);
      const [first, ...rest] = (await linesOf()).map((line) => line.replaceAll(directory, 'DIRECTORY'));
      expect(first).to.equal(`thresher.yaml:1 ${problem}`);
      expect(rest).to.deep.equal([
        'Q  ready',
        '1 queue: 1 ready, 0 incomplete, 0 refused; 1 error, 0 warnings, 0 notices',
      ]);
      expect((await check()).status).to.equal(1);
      expect(readdirSync(directory).sort()).to.deep.equal([
        'panda_queueconfig.json',
        'there.sdf',
        'thresher.yaml',
        'token',
      ]);
    });
  }

  it('check-config finds no fault in an unused token, or in directories that do not exist yet', async () => {
    write(
      { Q: good() },
      { http: { enabled: false, host: '0.0.0.0' }, master: { stateDir: 'a/b' }, log: { file: 'c/log' } },
    );
    expect((await linesOf())[0]).to.equal('Q  ready');
    const { stdout } = await runHere('--config', settings, '--state-dir', '/proc/nope/deep', 'check-config');
    expect(stdout).to.match(
      /the state directory \/proc\/nope\/deep cannot be used: nothing can be made in \/proc, which is the kernel's \(\/proc\) \[state-dir-unusable\]/,
    );
  });

  it('makes nothing, also as the real program', async () => {
    write({ Q: good() });
    const before = readdirSync(directory);
    const { status, stdout, stderr } = await runHere('--config', settings, 'check-config');
    expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' });
    expect(stdout).to.match(/^Q  ready\n1 queue: 1 ready/);
    expect(readdirSync(directory)).to.deep.equal(before);
    expect(existsSync(join(directory, 'state'))).to.equal(false);
  });
});

describe('explain', () => {
  beforeEach(() => {
    directory = temporaryDirectory();
    settings = join(directory, 'thresher.yaml');
    queueFile = join(directory, 'panda_queueconfig.json');
    const { submitter, ...rest } = good();
    write({
      X_TEMPLATE: {
        ...rest,
        submitter: { ...(submitter as Json), nCore: 2, password: 'pa55' },
        common: { workDir: 'work' },
        truePilot: true,
      },
      Q: { templateQueueName: 'X_TEMPLATE', nQueueLimitWorker: 9, submitter: { nCore: 4 }, sight: 1 },
      BAD: 5,
    });
  });

  const explain = (...args: string[]) => runHere('--config', settings, 'explain', ...args);

  it('names of each value the entry, the line and what became of it', async () => {
    const { status, stdout } = await explain('Q', '--output', 'json');
    expect(status).to.equal(0);
    const [queue] = JSON.parse(stdout) as [{ values: Json[] } & Json];
    expect(queue).to.deep.include({
      queue: 'Q',
      file: queueFile,
      line: 24,
      template: 'X_TEMPLATE',
      state: 'ready',
      listed: true,
      demand: { value: 'fill', why: 'the default of LocalSubmitter' },
      limits: { maxWorkers: 3, nQueueLimitWorker: 3, maxNewWorkersPerCycle: 0 },
      connections: [`local:${join(directory, 'work')}`],
    });
    const of = (option: string) => queue.values.find((value) => value.option === option);
    expect(of('submitter.nCore')).to.deep.equal({
      option: 'submitter.nCore',
      value: 4,
      from: 'Q',
      line: 28,
      note: '',
    });
    expect(of('monitor.name')).to.include({ from: 'X_TEMPLATE', line: 6 });
    expect(of('monitor.workDir')).to.include({ from: 'X_TEMPLATE common', value: 'work', line: 20 });
    expect(of('nQueueLimitWorker')).to.include({ value: 9, note: 'counts as 3' });
    expect(of('runMode')).to.include({ value: 'self', from: 'default', line: null });
    expect(of('monitor.pollInterval')).to.include({ value: 1, from: 'default' });
    expect(of('sight')).to.include({ note: 'neither thresher nor Harvester reads it' });
    expect(of('truePilot')?.note).to.match(/^no effect: /);
  });

  it('prints the same for people, and no secret', async () => {
    const { stdout } = await explain('Q');
    expect(stdout)
      .to.match(/^Q\n {2}state +ready\n/)
      .and.to.match(/^ {2}demand +fill: the default of LocalSubmitter$/m)
      .and.to.match(/^ {2}submitter +LocalSubmitter: LocalSubmitter of thresher\/local$/m)
      .and.to.match(/^submitter\.password +X_TEMPLATE +\d+ +"\(hidden\)" {2}\(not read by this plugin\)$/m)
      .and.to.match(/^nQueueLimitWorker +Q +\d+ +9 {2}\(counts as 3\)$/m);
    expect(`${stdout}${(await explain('Q', '--output', 'json')).stdout}`).not.to.contain('pa55');
  });

  it('names every reason why a queue submits nothing, what is to be changed first at the front', async () => {
    write({ Q: { ...good(), queueStatus: 'offline', mapType: 'OneToOne', demand: 'none', maxWorkers: 0 } });
    const { stdout } = await explain('Q');
    const [, state, ...rest] = stdout.split('\n');
    expect(state).to.equal('  state        ready, submits nothing');
    expect(rest.slice(0, 4).map((line) => line.replace(/:.*$/, '').trim())).to.deep.equal([
      'why          queueStatus is offline',
      'mapType is OneToOne',
      'maxWorkers is 0',
      'file         ' + queueFile,
    ]);
    const [json] = JSON.parse((await explain('Q', '--output', 'json')).stdout) as [Json];
    expect(json.reasons).to.have.length(3);
    expect(json.standing).to.match(/^queueStatus is offline: set it to "online"/);
  });

  it('explain describes a template, an unlisted queue, a broken entry and an unknown name', async () => {
    expect((await explain('X_TEMPLATE')).stdout).to.equal(
      `X_TEMPLATE is a template in ${queueFile}: it submits nothing itself; it serves Q\n`,
    );
    writeFileSync(settings, JSON.stringify({ qconf: { queueList: [] } }));
    expect((await explain('Q')).stdout).to.match(/^ {2}state +ready, not in qconf\.queueList/m);
    expect((await explain('BAD')).stderr).to.match(
      /\/BAD: error: the queue BAD must be an object[^\n]* \[wrong-type\]\n$/,
    );
    const unknown = await explain('QQ');
    expect(unknown.status).to.equal(1);
    expect(unknown.stderr).to.match(/there is no queue QQ in .*; did you mean Q\? \[no-such-queue\]/);
  });

  it('explain reports mistakes in files as check-config does, with one code a line', async () => {
    writeFileSync(settings, 'http:\n  port: x\n  host: 5\n');
    const settingsWrong = await explain('Q');
    expect(settingsWrong.status).to.equal(1);
    expect(settingsWrong.stderr.replaceAll(`${directory}/`, '')).to.equal(
      'thresher: thresher.yaml:3 /http/host: error: host is 5; it must be a string [wrong-type]\n' +
        'thresher: thresher.yaml:2 /http/port: error: port is "x"; it must be an integer [wrong-type]\n',
    );
    expect((await runHere('--config', settings, 'queues')).stderr).to.equal(settingsWrong.stderr);
    writeFileSync(settings, '{}');
    writeFileSync(queueFile, '{ "Q": ');
    expect((await explain('Q')).stderr).to.match(
      /^thresher: \S+:1 \/Q: error: not valid JSON[^[]*\[syntax\]\n$/,
    );
  });

  it('asks for exactly one queue', async () => {
    expect((await explain()).status).to.equal(2);
    expect((await explain('Q', 'R')).status).to.equal(2);
  });
});
