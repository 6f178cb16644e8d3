import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect } from 'chai';
import { harvesterSections } from '../../../../src/config/settings/harvester-file/keys.ts';
import type { Machine } from '../../../../src/config/settings/machine.ts';
import { readSettings } from '../../../../src/config/settings/settings.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const template = resolve(import.meta.dirname, '../../../fixtures/harvester/panda_harvester.cfg');

let directory: string;
let file: string;
let machine: Machine;

/** The environment of the machine, and PANDA_HOME in the test's directory where `env` names it. */
function read(text: string, env: Record<string, string> = {}) {
  machine = { env, hostname: 'node1.cern.ch', home: join(directory, 'home') };
  writeFileSync(file, text);
  return readSettings(file, undefined, machine);
}

function settingsOf(text: string, env: Record<string, string> = {}) {
  const result = read(text, env);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.settings;
}

/** All but the line that says where no queue file is, which these tests do without. */
function problemsOf(text: string, env: Record<string, string> = {}) {
  return read(text, env)
    .problems.filter(({ code }) => code !== 'file-unreadable')
    .map(({ severity, code, line, pointer, message }) => [severity, code, line, pointer, message]);
}

function write(path: string, text: string): string {
  const target = join(directory, path);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
  return target;
}

const override = (text: string) => write('panda/etc/configmap/panda_harvester_configmap.json', text);

describe("Harvester's settings", () => {
  beforeEach(() => {
    directory = temporaryDirectory();
    file = join(directory, 'panda_harvester.cfg');
  });

  it('come with the defaults of all keys that Harvester does not have', () => {
    const { values, stateDir, queueFile } = settingsOf('[master]\nharvester_id = CERN_1\n');
    expect(values.master).to.deep.equal({ harvester_id: 'CERN_1', shutdownTimeout: 20, pluginTimeout: 60 });
    expect(stateDir).to.equal('/var/lib/thresher');
    expect(queueFile).to.equal(join(directory, 'panda_queueconfig.json'));
  });

  it("hold thresher's own keys and sections too", () => {
    const text =
      '[master]\nstateDir = state\n[http]\nenabled = false\nport = 8080\n[log]\nlevel = debug\nfile = t.log\n';
    const settings = settingsOf(text);
    expect(settings.stateDir).to.equal(join(directory, 'state'));
    expect(settings.logFile).to.equal(join(directory, 't.log'));
    expect(settings.values.http).to.include({ enabled: false, port: 8080 });
    expect(problemsOf(text)).to.deep.equal([]);
  });

  for (const [what, line, key, value] of [
    ['digits', 'submitter.maxNewWorkers = 0050', 'maxNewWorkers', 50],
    ['a fraction, which Harvester keeps as text', 'submitter.sleepTime = 0.5', 'sleepTime', 0.5],
    ['an exponent', 'submitter.sleepTime = 1e2', 'sleepTime', 100],
    ['None, which unsets', 'submitter.sleepTime = None', 'sleepTime', 10],
    ['True', 'http.enabled = True', 'enabled', true],
    ['a small false', 'http.enabled = false', 'enabled', false],
    ['a name of digits', 'master.harvester_id = 1234', 'harvester_id', '1234'],
    [
      'a name of more digits than a number keeps',
      `master.harvester_id = ${'9'.repeat(30)}`,
      'harvester_id',
      '9'.repeat(30),
    ],
    ['a variable', 'master.harvester_id = $ID', 'harvester_id', 'from env'],
    ['a variable in braces', 'master.harvester_id = ${ID}', 'harvester_id', 'from env'],
    ['a variable with a number', 'submitter.maxNewWorkers = $N', 'maxNewWorkers', 7],
    ['a variable with None', 'submitter.maxNewWorkers = $NONE', 'maxNewWorkers', 1000],
    ['the host name, set nowhere', 'master.harvester_id = $HOSTNAME', 'harvester_id', 'node1'],
    ['the host name in small letters', 'master.harvester_id = ${hostname}', 'harvester_id', 'node1'],
    ['a dollar within', 'master.harvester_id = a$ID', 'harvester_id', 'a$ID'],
    ['a reference', 'master.harvester_id = %(x)s-1\nx = CERN', 'harvester_id', 'CERN-1'],
    ['ALL', 'qconf.queueList = ALL', 'queueList', ['ALL']],
    ['one queue', 'qconf.queueList = CERN', 'queueList', ['CERN']],
    ['queues on one line', 'qconf.queueList = CERN, BNL', 'queueList', ['CERN', 'BNL']],
    ['queues in JSON on one line', 'qconf.queueList = ["CERN", \'BNL\']', 'queueList', ['CERN', 'BNL']],
    ['queues on lines', 'qconf.queueList =\n CERN\n# not this\n\n BNL', 'queueList', ['CERN', 'BNL']],
    ['queues in JSON', 'qconf.queueList =\n ["CERN",\n "$ID"]', 'queueList', ['CERN', 'from env']],
    ['a queue of digits', 'qconf.queueList = 12', 'queueList', ['12']],
    ['queues from a variable', 'qconf.queueList = $LIST', 'queueList', ['A', 'B']],
  ] as const) {
    it(`understand ${what}`, () => {
      const section = line.slice(0, line.indexOf('.'));
      const text = `[${section}]\n${line.slice(section.length + 1)}\n`;
      const { values } = settingsOf(text, { ID: 'from env', N: '7', NONE: 'None', LIST: '\nA\nB' });
      const found = Object.entries(values).find(([name]) => name === section)?.[1] as Record<string, unknown>;
      expect(found[key]).to.deep.equal(value);
    });
  }

  it('take what [DEFAULT] says for each section that has the key', () => {
    const { values } = settingsOf('[DEFAULT]\nsleepTime = 7\n[submitter]\n[sweeper]\nsleepTime = 8\n');
    expect([values.submitter.sleepTime, values.sweeper.sleepTime]).to.deep.equal([7, 8]);
    expect(problemsOf('[DEFAULT]\nanything = 1\n[submitter]\n')).to.deep.equal([]);
  });

  it('are known by their first line, whatever the name of the file', () => {
    file = join(directory, 'settings');
    expect(settingsOf('# ours\n\n; too\n[master]\nharvester_id = A\n').values.master.harvester_id).to.equal(
      'A',
    );
    expect(settingsOf('\uFEFF[master]\nharvester_id = A\n').values.master.harvester_id).to.equal('A');
    expect(settingsOf('# [master]\nmaster: { harvester_id: B }\n').values.master.harvester_id).to.equal('B');
  });

  it('keep the credential managers as they are', () => {
    const text = [
      '[credmanager]',
      'moduleName =',
      ' a',
      ' b',
      'pluginConfigs =',
      ' [{"module": "m",',
      '   "configs": {"p": {"certFile": "$CERT"}}}]',
      'sleepTime = 1800',
    ].join('\n');
    expect(settingsOf(text, { CERT: '/cert' }).values.credmanager).to.deep.include({
      moduleName: ['a', 'b'],
      pluginConfigs: [{ module: 'm', configs: { p: { certFile: '/cert' } } }],
      sleepTime: 1800,
    });
    expect(problemsOf(text, { CERT: '/cert' })).to.deep.equal([]);
    expect(problemsOf(text)).to.deep.equal([
      [
        'warning',
        'environment-missing',
        7,
        '/credmanager/pluginConfigs',
        'a string in pluginConfigs is "$CERT", and the environment has no variable "CERT"; set it for the daemon, or write the value itself',
      ],
    ]);
  });

  describe("in Harvester's own template", () => {
    it("Harvester's template is refused for each FIXME that thresher would read, and for no other", () => {
      const result = readSettings(template, undefined, { env: {}, hostname: 'h', home: '/none' });
      expect(result.ok).to.equal(false);
      const right = "a placeholder of Harvester's template; write the value of your site";
      expect(
        result.problems
          .filter(({ severity }) => severity !== 'notice')
          .map(({ file, line, pointer, severity, code, message }) => [
            ...[file, line, pointer],
            ...[severity, code, message],
          ]),
      ).to.deep.equal(
        [
          [18, '/master/harvester_id', 'harvester_id is "FIXME"'],
          [195, '/qconf/queueList/0', 'queueList[0] is "FIXME_1"'],
          [196, '/qconf/queueList/1', 'queueList[1] is "FIXME_2"'],
        ].map(([line, pointer, is]) => [
          ...[template, line, pointer, 'error', 'template-placeholder'],
          `${String(is)}, ${right}`,
        ]),
      );
    });

    it("Harvester's template can be used once each FIXME is fixed, with a notice for each key that thresher does not read", () => {
      copyFileSync(template, file);
      const text = readFileSync(file, 'utf8')
        .replace('harvester_id = FIXME', 'harvester_id = CERN_1')
        .replace('FIXME_1', 'CERN')
        .replace('FIXME_2', 'BNL');
      const { values } = settingsOf(text);
      expect(values.master.harvester_id).to.equal('CERN_1');
      expect(values.qconf).to.deep.equal({
        configFile: 'panda_queueconfig.json',
        configFromCacher: false,
        queueList: ['CERN', 'BNL'],
        resolverModule: 'pandaharvester.harvestermisc.info_utils',
        resolverClass: 'PandaQueuesDict',
        autoBlacklist: false,
        checkInterval: 5,
      });
      expect(values.submitter).to.include({ sleepTime: 60, maxNewWorkers: 1000 });
      expect(values.sweeper).to.include({
        keepFinished: 24,
        keepFailed: 72,
        keepCancelled: 72,
        keepMissed: 24,
      });
      const problems = problemsOf(text);
      expect(problems.every(([severity]) => severity === 'notice')).to.equal(true);
      const messages = problems.map(([, , , , message]) => message);
      expect(messages).to.include('thresher reads nothing of [db]: its 13 keys have no effect');
      expect(messages).to.include('thresher reads nothing of [apfmon]: its 1 key has no effect');
      expect(messages).to.include('thresher reads nothing of [monitor]: its 16 keys have no effect');
      expect(messages).to.include('thresher does not read master.uname: it has no effect');
      // A notice for each unread key of a section that is read in part, and one for each other section.
      expect(problems.length).to.be.lessThan(60);
    });

    it("all keys of Harvester's template are known to be settings of Harvester", () => {
      const sections = [...readFileSync(template, 'utf8').matchAll(/^\[(.*)\]/gm)].map(([, name]) => name);
      expect(harvesterSections).to.have.members(sections);
    });
  });

  const noVariable = 'and the environment has no variable';
  for (const [what, text, ...expected] of [
    [
      'no header',
      'harvester_id = A\n',
      [
        'error',
        'syntax',
        1,
        '',
        '"harvester_id = A" stands before any section; a header such as [master] must come first',
      ],
    ],
    [
      'YAML in a file named as no YAML is',
      'master:\n  harvester_id: A\n',
      [
        'error',
        'syntax',
        1,
        '',
        '"master:" stands before any section; a header such as [master] must come first',
      ],
    ],
    [
      'a key twice',
      '[master]\nharvester_id = A\nharvester_id = B\n',
      [
        'error',
        'duplicate-key',
        3,
        '/master/harvester_id',
        '"harvester_id" stands twice in [master], first on line 2; remove one of them',
      ],
    ],
    [
      'a section twice',
      '[master]\n[qconf]\n[master]\n',
      [
        'error',
        'duplicate-key',
        3,
        '/master',
        'section [master] stands twice, first on line 1; move its keys there',
      ],
    ],
    [
      'a bare percent sign',
      '[db]\npassword = 5%5\n',
      [
        'error',
        'syntax',
        2,
        '/db/password',
        'password: "%5" is no reference such as "%(name)s"; a percent sign is written "%%"',
      ],
    ],
    [
      'a variable that is not set',
      '[master]\n\nharvester_id = $NO_SUCH\n',
      [
        'error',
        'environment-missing',
        3,
        '/master/harvester_id',
        `harvester_id is "$NO_SUCH", ${noVariable} "NO_SUCH"; set it for the daemon, or write the value itself`,
      ],
    ],
    [
      'a path that begins with a variable',
      '[master]\nstateDir = $SRV/state\n',
      [
        'error',
        'environment-missing',
        2,
        '/master/stateDir',
        `stateDir is "$SRV/state", ${noVariable} "SRV/state"; a variable stands for the whole value, so write the value itself`,
      ],
    ],
    [
      'a path behind a variable in braces',
      '[master]\nstateDir = ${SRV}/state\n',
      [
        'warning',
        'environment-replaces-all',
        2,
        '/master/stateDir',
        'stateDir is "${SRV}/state": the variable SRV replaces all of it, "/state" too, as in Harvester; write the value itself',
      ],
    ],
    [
      'a word where a number must be',
      '[submitter]\nsleepTime = soon\n',
      ['error', 'wrong-type', 2, '/submitter/sleepTime', 'sleepTime is "soon"; it must be a number'],
    ],
    [
      'a fraction where an integer must be',
      '[submitter]\nmaxNewWorkers = 1.5\n',
      ['error', 'wrong-type', 2, '/submitter/maxNewWorkers', 'maxNewWorkers is 1.5; it must be an integer'],
    ],
    [
      'a comment behind a value, which is part of it',
      '[submitter]\nsleepTime = 60 # seconds\n',
      ['error', 'wrong-type', 2, '/submitter/sleepTime', 'sleepTime is "60 # seconds"; it must be a number'],
    ],
    [
      'a negative time',
      '[sweeper]\nkeepFailed = -1\n',
      ['error', 'wrong-type', 2, '/sweeper/keepFailed', 'keepFailed is -1; it must be >= 0'],
    ],
    [
      'a list where one value must be',
      '[qconf]\nconfigFile =\n a.json\n b.json\n',
      [
        'error',
        'wrong-type',
        2,
        '/qconf/configFile',
        'configFile is ["a.json","b.json"]; it must be a string',
      ],
    ],
    [
      'a truth where a name must be',
      '[master]\nharvester_id = True\n',
      ['error', 'wrong-type', 2, '/master/harvester_id', 'harvester_id is true; it must be a string'],
    ],
    [
      'no value',
      '[qconf]\nqueueList =\n[submitter]\nsleepTime =\n',
      [
        'error',
        'wrong-type',
        2,
        '/qconf/queueList',
        'queueList has no value; write one, or None for the default',
      ],
      [
        'error',
        'wrong-type',
        4,
        '/submitter/sleepTime',
        'sleepTime has no value; write one, or None for the default',
      ],
    ],
    [
      'a number in a JSON list of queues',
      '[qconf]\nqueueList =\n [\n  "A",\n  5\n ]\n',
      ['error', 'wrong-type', 5, '/qconf/queueList/1', 'queueList[1] is 5; it must be a string'],
    ],
    [
      'broken JSON',
      '[qconf]\nqueueList =\n [\n  "A"\n  "B"\n ]\n',
      ['error', 'syntax', 5, '/qconf/queueList', 'queueList: not valid JSON: comma expected'],
    ],
    [
      'a word that is not offered',
      '[log]\nlevel = INFO\n',
      [
        'error',
        'wrong-type',
        2,
        '/log/level',
        'level is "INFO"; it must be one of "error", "warn", "info", "debug"',
      ],
    ],
    [
      'a cron expression that is none',
      '[sweeper]\ncron = daily\n',
      [
        'error',
        'wrong-type',
        2,
        '/sweeper/cron',
        'cron is "daily"; it must be a cron expression such as "*/10 * * * *"',
      ],
    ],
    [
      'an empty list',
      '[qconf]\nqueueList = []\n',
      [
        'error',
        'wrong-type',
        2,
        '/qconf/queueList',
        'queueList has no value; write one, or None for the default',
      ],
    ],
    [
      'quotes, which are no grammar',
      '[master]\nharvester_id = "CERN"\n',
      [
        'warning',
        'quoted-value',
        2,
        '/master/harvester_id',
        'harvester_id is "CERN" with the quotes, as in Harvester; remove them if they are not meant',
      ],
    ],
    [
      'a misspelt key',
      '[submitter]\nsleeptime = 5\n',
      [
        'warning',
        'unknown-setting',
        2,
        '/submitter/sleeptime',
        '"sleeptime" in [submitter] is a key of neither Harvester nor thresher; is sleepTime meant?',
      ],
    ],
    [
      'a key that nothing is like',
      '[submitter]\nxyz = 5\n',
      [
        'warning',
        'unknown-setting',
        2,
        '/submitter/xyz',
        '"xyz" in [submitter] is a key of neither Harvester nor thresher',
      ],
    ],
    [
      'a source, which this form of file cannot hold',
      '[sources]\nspool = 5\n',
      [
        'warning',
        'unread-setting',
        2,
        '/sources/spool',
        'thresher does not read [sources] of this file: write sources.spool into a thresher.yaml, with the other settings',
      ],
    ],
    [
      'a misspelt section',
      '[sumbitter]\nsleepTime = 5\n',
      [
        'warning',
        'unknown-setting',
        1,
        '/sumbitter',
        '[sumbitter] is a section of neither Harvester nor thresher; is [submitter] meant?',
      ],
    ],
    [
      'an unread key',
      '[submitter]\nnThreads = 3\nsleepTime = 1\n',
      [
        'notice',
        'unread-setting',
        2,
        '/submitter/nThreads',
        'thresher does not read submitter.nThreads: it has no effect',
      ],
    ],
    [
      'an unread section with a variable that only Harvester has',
      '[db]\npassword = $SECRET\n',
      ['notice', 'unread-setting', 1, '/db', 'thresher reads nothing of [db]: its 1 key has no effect'],
    ],
    [
      'limits that thresher does not apply, and nothing with those that it does',
      '[submitter]\nactivateWorkerFactor = auto\nminSubmissionInterval = 0\nnoPilotsWhenNoActiveJobs = True\n',
      [
        'notice',
        'unread-setting',
        3,
        '/submitter/minSubmissionInterval',
        'thresher does not read submitter.minSubmissionInterval: it has no effect',
      ],
    ],
    [
      'another way to submit and to look for one plugin, which queues say themselves',
      '[master]\nextraPluginConfigs =\n {\n "HTCondorSubmitter": {"submit_arc_grid_type": "nordugrid"}\n }\n',
      [
        'warning',
        'unread-setting',
        2,
        '/master/extraPluginConfigs',
        'thresher does not read master.extraPluginConfigs: a queue says this itself, by ceARCGridType in its submitter section (for HTCondorSubmitter.submit_arc_grid_type) and useCondorHistory in its monitor section (for HTCondorMonitor.use_condor_history)',
      ],
    ],
    [
      'nothing of them',
      '[master]\nextraPluginConfigs =\n {}\n',
      [
        'notice',
        'unread-setting',
        2,
        '/master/extraPluginConfigs',
        'thresher does not read master.extraPluginConfigs: it has no effect',
      ],
    ],
    [
      'a limit that its queues have to set',
      '[monitor]\nworkerQueueTimeLimit = 86400\n',
      [
        ...(['warning', 'unread-setting', 2, '/monitor/workerQueueTimeLimit'] as const),
        'thresher does not read monitor.workerQueueTimeLimit: the limit is an option of each queue, 172800 (s) by default; set it in the monitor sections, as queueTimeLimit of HTCondorMonitor and podQueueTimeLimit of K8sMonitor',
      ],
    ],
    [
      'a limit that its queues have by default',
      '[monitor]\nworkerQueueTimeLimit = 172800\n',
      [
        ...(['notice', 'unread-setting', 2, '/monitor/workerQueueTimeLimit'] as const),
        'thresher needs no monitor.workerQueueTimeLimit: this is the default of queueTimeLimit of HTCondorMonitor and podQueueTimeLimit of K8sMonitor',
      ],
    ],
    [
      'keys of the PanDA server that thresher has no need of',
      '[pandacon]\npandaURL = http://h/server/panda\n[propagator]\nnWorkersInBulk = 5\nnThreads = 3\n',
      [
        ...(['notice', 'unread-setting', 2, '/pandacon/pandaURL'] as const),
        'thresher needs no pandacon.pandaURL: it asks the PanDA server by HTTPS alone',
      ],
      [
        ...(['notice', 'unread-setting', 5, '/propagator/nThreads'] as const),
        'thresher needs no propagator.nThreads: one loop reports all workers',
      ],
    ],
  ] as const) {
    it(`say where and what is wrong with ${what}`, () => {
      expect(problemsOf(text, { SRV: '/srv' })).to.deep.equal(expected);
    });
  }

  it('keep an item of the cacher whole, one on a line and one alone', () => {
    const url = 'https://cric.test/?json&type[]=A,B';
    for (const text of [`[cacher]\ndata =\n a||${url}\n`, `[cacher]\ndata = a||${url}\n`])
      expect(settingsOf(text).values.cacher.data).to.deep.equal([`a||${url}`]);
  });

  it('may lie behind an address, which is not read', () => {
    expect(problemsOf('[master]\n', { HARVESTER_INSTANCE_CONFIG_URL: 'http://h/c' })).to.deep.equal([
      [
        ...['warning', 'unread-setting', 1, ''],
        'HARVESTER_INSTANCE_CONFIG_URL is set, and thresher reads no settings from there; write them into this file',
      ],
    ]);
  });

  it('settings that are a directory cannot be read', () => {
    mkdirSync(file);
    const result = readSettings(file);
    expect(result.problems.map(({ code, message }) => [code, message])).to.deep.equal([
      ['file-unreadable', 'it is a directory, not a regular file: name the file of the settings'],
    ]);
  });

  describe('overridden by the file of a ConfigMap', () => {
    const text = '[master]\nharvester_id = A\n[submitter]\nsleepTime = 5\n';
    let env: Record<string, string>;

    beforeEach(() => {
      env = { PANDA_HOME: join(directory, 'panda'), ID: 'from env' };
    });

    it('take its values, section by section and key by key', () => {
      override('{"master": {"harvester_id": "$ID"}, "submitter": {"maxNewWorkers": 3}}');
      const { values } = settingsOf(text, env);
      expect(values.master.harvester_id).to.equal('from env');
      expect(values.submitter).to.include({ sleepTime: 5, maxNewWorkers: 3 });
      expect(problemsOf(text, env)).to.deep.equal([]);
    });

    it("bring thresher's own sections that the settings do not have: Harvester's image may be where they are", () => {
      override('{"log": {"level": "debug"}, "http": {"host": "0.0.0.0", "tokenFile": "$TOKEN"}}');
      const all = { ...env, TOKEN: '/etc/token' };
      const { values } = settingsOf(text, all);
      expect(values.log.level).to.equal('debug');
      expect(values.http).to.include({ host: '0.0.0.0', tokenFile: '/etc/token' });
      const other = override('{\n"http": {\n"port": "high"}}');
      expect(problemsOf(text, env)).to.deep.equal([
        ['error', 'wrong-type', 3, '/http/port', 'port is "high"; it must be an integer'],
      ]);
      expect(read(text, env).problems.find(({ pointer }) => pointer === '/http/port')?.file).to.equal(other);
    });

    it('take them only where PANDA_HOME says so', () => {
      override('{"master": {"harvester_id": "B"}}');
      expect(settingsOf(text).values.master.harvester_id).to.equal('A');
      expect(settingsOf(text, { PANDA_HOME: '' }).values.master.harvester_id).to.equal('A');
      expect(settingsOf(text, { PANDA_HOME: '/nowhere' }).values.master.harvester_id).to.equal('A');
    });

    for (const [what, json, ...expected] of [
      [
        'broken',
        '{"master": {\n "harvester_id" "B"}}',
        ['error', 'syntax', 2, '/master/harvester_id', 'not valid JSON: colon expected'],
      ],
      [
        'no object',
        '["master"]',
        [
          'error',
          'wrong-type',
          1,
          '',
          'the file holds no object; it must be an object such as {"master": {"harvester_id": "..."}}',
        ],
      ],
      [
        'with a section that is none',
        '{\n"master": "A"}',
        [
          'error',
          'wrong-type',
          2,
          '/master',
          '"master" is "A"; it must be an object such as {"master": {"harvester_id": "..."}}',
        ],
      ],
      [
        'with a value of the wrong type',
        '{"submitter":\n {"sleepTime": true}}',
        ['error', 'wrong-type', 2, '/submitter/sleepTime', 'sleepTime is true; it must be a number'],
      ],
      [
        "with a section of Harvester's that the settings do not have",
        '{\n"monitor": {"sleepTime": 5}}',
        [
          'warning',
          'unread-setting',
          2,
          '/monitor',
          '"monitor" has no effect: only sections that panda_harvester.cfg has are overridden; add [monitor] there',
        ],
      ],
      [
        'with a misspelt key',
        '{"submitter": {"sleepTimes": 3}}',
        [
          'warning',
          'unknown-setting',
          1,
          '/submitter/sleepTimes',
          '"sleepTimes" in [submitter] is a key of neither Harvester nor thresher; is sleepTime meant?',
        ],
      ],
    ] as const) {
      it(`name it when it is ${what}`, () => {
        const other = override(json);
        expect(problemsOf(text, env)).to.deep.equal(expected);
        const named = read(text, env).problems.filter(({ code }) => code !== 'file-unreadable');
        expect(named.map((problem) => problem.file)).to.deep.equal([other]);
      });
    }
  });
});
