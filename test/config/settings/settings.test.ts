import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readSettings } from '../../../src/config/settings/settings.ts';
import { withoutOwn } from '../../../src/util/own-secrets.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

let directory: string;
let file: string;

function read(text: string, stateDir?: string) {
  writeFileSync(file, text);
  return readSettings(file, stateDir);
}

function settingsOf(text: string, stateDir?: string) {
  const result = read(text, stateDir);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.settings;
}

function problemsOf(text: string) {
  const result = read(text);
  return result.ok ? [] : result.problems;
}

const submitterDefaults = {
  maxNewWorkers: 1000,
  submissionBurst: 100,
  activateWorkerFactor: 1,
  noPilotsWhenNoActiveJobs: false,
  blackHoleLifetime: 10,
  blackHoleWorkers: 20,
  blackHolePause: 600,
};

describe('the settings of the daemon', () => {
  beforeEach(() => {
    directory = temporaryDirectory();
    file = join(directory, 'thresher.yaml');
  });

  it('tell each command which logins there are, in their URLs and in the environment, also where they are wrong', () => {
    const logins = [
      'Zq7Hunter-9xKw2-cric',
      'Zq7Hunter-9xKw2-db',
      'Zq7Hunter-9xKw2-proxy',
      'Zq7Hunter-9xKw2-env',
    ];
    const [cric = '', db = '', proxy = '', variable = ''] = logins;
    writeFileSync(
      file,
      `cacher: { data: ["panda_queues.json||http://bob:${cric}@host/json"] }\ndatabase: { url: "postgresql://u:${db}@db/d" }`,
    );
    const env = {
      https_proxy: `http://bob:${proxy}@proxy:3128`,
      CRIC_PASSWORD: variable,
      PANDA_HOME: '/opt/panda',
    };
    expect(readSettings(file, undefined, { env, hostname: 'h', home: '/' }).ok).to.equal(false);
    for (const login of logins) expect(withoutOwn(`got "${login}"`), login).to.equal('got "(hidden)"');
    expect(withoutOwn('in /opt/panda')).to.equal('in /opt/panda');
  });

  it('name a database of PostgreSQL, with files beside the settings', () => {
    const { postgresql } = settingsOf(
      'database: { url: "postgresql://u@db.example.org/d", passwordFile: pw, sslrootcert: /etc/ca.pem }',
    );
    expect(postgresql).to.deep.equal({
      kind: 'postgresql',
      leaseDuration: 15_000,
      host: 'db.example.org',
      port: 5432,
      user: 'u',
      database: 'd',
      sslmode: 'verify-full',
      passwordFile: join(directory, 'pw'),
      sslrootcert: '/etc/ca.pem',
    });
  });

  for (const [text, code, why] of [
    ['url: "postgresql://u:geheim@h/d"', 'wrong-type', 'the address holds a password'],
    ['url: "mysql://u@h/d"', 'wrong-type', 'none of PostgreSQL'],
    ['url: "postgresql://u@h/d", sslmode: prefer', 'wrong-type', 'prefer'],
    ['url: 5', 'wrong-type', 'url'],
    ['password: geheim', 'unknown-setting', 'password'],
  ] as const)
    it(`refuse a database that is none, and tell no password: ${text}`, () => {
      writeFileSync(file, `database: { ${text} }`);
      const result = readSettings(file);
      expect(result.ok).to.equal(false);
      const [problem] = result.problems;
      expect(problem?.pointer).to.match(/^\/database/);
      expect(problem?.code).to.equal(code);
      expect(problem?.message).to.contain(why).and.to.not.contain('geheim');
    });

  it('have a default for everything, so that an empty file is enough', () => {
    const { placeOf, ...settings } = settingsOf('');
    expect(placeOf('/http/port')).to.deep.equal({ file, pointer: '/http/port', line: 1 });
    expect(settings).to.deep.equal({
      file,
      stateDir: '/var/lib/thresher',
      queueFile: join(directory, 'panda_queueconfig.json'),
      values: {
        master: { shutdownTimeout: 20, pluginTimeout: 60 },
        database: { leaseDuration: 15, shareQueues: false, sslmode: 'verify-full' },
        qconf: {
          configFile: 'panda_queueconfig.json',
          configFromCacher: false,
          autoBlacklist: true,
          checkInterval: 5,
        },
        cacher: { refreshInterval: 10, sleepTime: 60, timeout: 60, warnAge: 24 },
        submitter: { sleepTime: 10, ...submitterDefaults },
        sources: {},
        monitor: { maxStatusAge: 120, missingGrace: 30 },
        pandacon: {},
        commandmanager: { sleepTime: 5, commands_bulk_size: 20 },
        propagator: {
          nWorkersInBulk: 100,
          updateInterval: 1800,
          maxDialogs: 50,
          minMessageLevel: 'WARNING',
        },
        sweeper: {
          sleepTime: 60,
          listInterval: 600,
          keepFinished: 24,
          keepFailed: 72,
          keepCancelled: 72,
          keepMissed: 24,
          keepRows: 24,
          keepNews: 168,
          mostNews: 1_000_000,
          pruneInterval: 3600,
        },
        credmanager: { sleepTime: 1800, minLifetime: 3600, warnLifetime: 86_400 },
        http: { enabled: true, host: '127.0.0.1', port: 25085 },
        log: { level: 'info' },
      },
    });
  });

  it('keep what is written beside the defaults of the same section', () => {
    const { values } = settingsOf('submitter:\n  sleepTime: 1\nlog: { level: debug }\n');
    expect(values.submitter).to.deep.equal({ sleepTime: 1, ...submitterDefaults });
    expect(values.log).to.deep.equal({ level: 'debug' });
  });

  it('take a section of which every key is commented out for one that is not there', () => {
    expect(settingsOf('http:\n  # port: 1\nlog:\n').values).to.deep.equal(settingsOf('').values);
  });

  it('count relative paths from their own file', () => {
    const settings = settingsOf('master: { stateDir: ../state }\nqconf: { configFile: sub/queues.json }\n');
    expect(settings.stateDir).to.equal(join(directory, '..', 'state'));
    expect(settings.queueFile).to.equal(join(directory, 'sub', 'queues.json'));
  });

  it('leave absolute paths alone', () => {
    const settings = settingsOf(
      'master: { stateDir: /srv/state }\nqconf: { configFile: /etc/queues.json }\n',
    );
    expect(settings).to.include({ stateDir: '/srv/state', queueFile: '/etc/queues.json' });
  });

  it('give way to the state directory of the command line', () => {
    expect(settingsOf('master: { stateDir: /srv/state }\n', '/other').stateDir).to.equal('/other');
  });

  describe('with variables of the environment', () => {
    const machine = {
      env: { QUEUES: '/etc/queues.json', N: '50', OFF: 'false', LIST: 'A,B', TEXT: 'many', EMPTY: '' },
      hostname: 'node1.cern.ch',
      home: '/root',
    };
    const readHere = (text: string) => {
      writeFileSync(file, text);
      return readSettings(file, undefined, machine);
    };

    it('a setting takes a variable if its string is nothing else, in the type of the setting', () => {
      const result = readHere(
        [
          'master: { harvester_id: "$HOSTNAME" }',
          'qconf: { configFile: "${QUEUES}", queueList: $LIST }',
          'submitter: { maxNewWorkers: $N }',
          'http: { enabled: $OFF }',
        ].join('\n'),
      );
      expect(result.problems).to.deep.equal([]);
      if (!result.ok) throw new Error('refused');
      const { queueFile, values } = result.settings;
      expect(queueFile).to.equal('/etc/queues.json');
      expect(values.master.harvester_id).to.equal('node1');
      expect(values.qconf.queueList).to.deep.equal(['A', 'B']);
      expect(values.submitter.maxNewWorkers).to.equal(50);
      expect(values.http.enabled).to.equal(false);
    });

    it('a setting leaves every other dollar alone', () => {
      const result = readHere('log: { file: "/var/${N}/a" }\nmaster: { stateDir: "$N/x" }\n');
      if (!result.ok) throw new Error('refused');
      expect(result.settings.logFile).to.equal('/var/${N}/a');
      expect(result.settings.stateDir).to.equal(join(directory, '$N/x'));
    });

    for (const [what, text, ...expected] of [
      [
        'one that is not set',
        'master:\n  stateDir: $NO_SUCH\n',
        ['environment-missing', 2, '/master/stateDir'],
        'stateDir is "$NO_SUCH", and the environment has no variable "NO_SUCH"; set it for the daemon, or write the value itself',
      ],
      [
        'one that is not set in a list',
        'qconf:\n  queueList:\n    - A\n    - ${NO_SUCH}\n',
        ['environment-missing', 4, '/qconf/queueList/1'],
        'queueList[1] is "${NO_SUCH}", and the environment has no variable "NO_SUCH"; set it for the daemon, or write the value itself',
      ],
      [
        'one of the wrong type',
        'submitter:\n  maxNewWorkers: $TEXT\n',
        ['wrong-type', 2, '/submitter/maxNewWorkers'],
        'maxNewWorkers is "many"; it must be an integer',
      ],
      [
        'an empty one',
        'submitter:\n  maxNewWorkers: $EMPTY\n',
        ['wrong-type', 2, '/submitter/maxNewWorkers'],
        'maxNewWorkers is ""; it must be an integer',
      ],
    ] as const) {
      it(`a setting with ${what} gets an error with its position and the mistake`, () => {
        const found = readHere(text).problems.map(({ code, line, pointer, message }) => [
          [code, line, pointer],
          message,
        ]);
        expect(found).to.deep.equal([expected]);
      });
    }
  });

  it('keep credential managers as they are', () => {
    const result = read('master: {}\ncredmanager:\n  moduleName: [a]\n');
    expect(result.problems).to.deep.equal([]);
    expect(result.ok && result.settings.values.credmanager).to.deep.include({ moduleName: ['a'] });
  });

  it('accept a cron expression', () => {
    expect(settingsOf('sweeper: { cron: "*/10 * * * *" }\n').values.sweeper.cron).to.equal('*/10 * * * *');
  });

  for (const [what, text, pointer, line, code, message] of [
    [
      'an unknown key',
      'master:\n  shutdownTimeout: 5\nsubmitter:\n  sleeptime: 3\n',
      '/submitter/sleeptime',
      4,
      'unknown-setting',
      '"sleeptime" is not a known setting here; did you mean "sleepTime"?',
    ],
    [
      'an unknown section',
      '# settings\nsubmiter:\n  sleepTime: 3\n',
      '/submiter',
      2,
      'unknown-setting',
      '"submiter" is not a known setting here; did you mean "submitter"?',
    ],
    [
      'a key that is like no other',
      'qconf:\n  colour: red\n',
      '/qconf/colour',
      2,
      'unknown-setting',
      '"colour" is not a known setting here; there are configFile, queueList, configFromCacher, defaultTemplateQueueName, autoBlacklist, resolverModule, resolverClass, checkInterval',
    ],
    [
      'an unknown section without keys',
      'htpp:\n',
      '/htpp',
      1,
      'unknown-setting',
      '"htpp" is not a known setting here; did you mean "http"?',
    ],
    [
      'a key without a value',
      'http:\n  host:\n',
      '/http/host',
      2,
      'wrong-type',
      'host is null; it must be a string',
    ],
    [
      'a stop that no timer can wait for',
      'master:\n  shutdownTimeout: 3000000\n',
      '/master/shutdownTimeout',
      2,
      'wrong-type',
      'shutdownTimeout is 3000000; it must be <= 86400',
    ],
    [
      'a number in quotes',
      'submitter:\n  maxNewWorkers: "50"\n',
      '/submitter/maxNewWorkers',
      2,
      'wrong-type',
      'maxNewWorkers is "50"; it must be an integer: write 50 without quotes',
    ],
    [
      'a time below its bound',
      'master:\n  pluginTimeout: 0\n',
      '/master/pluginTimeout',
      2,
      'wrong-type',
      'pluginTimeout is 0; it must be >= 0.1',
    ],
    [
      'a stop that never ends',
      'master:\n  shutdownTimeout: 3000000\n',
      '/master/shutdownTimeout',
      2,
      'wrong-type',
      'shutdownTimeout is 3000000; it must be <= 86400',
    ],
    [
      'a pass that never comes',
      'submitter:\n  sleepTime: .inf\n',
      '/submitter/sleepTime',
      2,
      'wrong-type',
      'sleepTime is Infinity; it must be a number that a computer can count to',
    ],
    [
      'no number at all',
      'monitor:\n  missingGrace: .nan\n',
      '/monitor/missingGrace',
      2,
      'wrong-type',
      'missingGrace is NaN; it must be a number that a computer can count to',
    ],
    [
      'more workers than there are numbers',
      'submitter:\n  maxNewWorkers: 1e400\n',
      '/submitter/maxNewWorkers',
      2,
      'wrong-type',
      'maxNewWorkers is Infinity; it must be an integer that a computer can count to',
    ],
    [
      'a word that is not offered',
      'log:\n  format: plain\n  level: loud\n',
      '/log/level',
      3,
      'wrong-type',
      'level is "loud"; it must be one of "error", "warn", "info", "debug"',
    ],
    [
      'a factory id that cannot be a label',
      'master:\n  factoryId: CERN_1\n',
      '/master/factoryId',
      2,
      'wrong-type',
      'factoryId is "CERN_1"; it must match ^[a-z]([a-z0-9-]{0,28}[a-z0-9])?$',
    ],
    [
      'one queue that is no list',
      'qconf:\n  queueList: CERN\n',
      '/qconf/queueList',
      2,
      'wrong-type',
      'queueList is "CERN"; it must be a list [ ... ]',
    ],
    [
      'a cron expression that is none',
      'sweeper:\n  sleepTime: 5\n  cron: every day\n',
      '/sweeper/cron',
      3,
      'wrong-type',
      'cron is "every day"; it must be a cron expression such as "*/10 * * * *"',
    ],
    ['a list', '- a\n- b\n', '', 1, 'wrong-type', 'it is ["a","b"]; it must be an object { ... }'],
  ] as const) {
    it(`say where and what is wrong with ${what}`, () => {
      expect(problemsOf(text)).to.deep.equal([{ file, pointer, line, severity: 'error', code, message }]);
    });
  }

  it('name all mistakes at once', () => {
    const problems = problemsOf('log:\n  level: 1\nmonitor:\n  maxStatusAge: x\n');
    expect(problems.map(({ pointer, line }) => [pointer, line])).to.deep.equal([
      ['/monitor/maxStatusAge', 4],
      ['/log/level', 2],
    ]);
  });

  it('are refused when they are no YAML, or not there', () => {
    expect(problemsOf('master: [1\n').map(({ code }) => code)).to.include('syntax');
    const result = readSettings(join(directory, 'nothing.yaml'));
    expect(result.ok ? [] : result.problems.map(({ code, line }) => [code, line])).to.deep.equal([
      ['file-unreadable', 0],
    ]);
  });
});
