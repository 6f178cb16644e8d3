import { type ChildProcess, execFileSync, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { RetrievedPodData } from '../../../../src/clients/interlink/wire.ts';
import { podOptions } from '../../../../src/sources/interlink/pod/options.ts';
import type { PlanContext } from '../../../../src/sources/interlink/pod/plan.ts';
import { readReport } from '../../../../src/sources/interlink/pod/report.ts';
import { type Apptainer, apptainer } from '../../../support/apptainer.ts';
import { planned, podData } from '../../../support/pods.ts';
import { until } from '../../../support/until.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

describe('a Pod, run by a real apptainer', () => {
  let directory: string;
  let real: Apptainer;
  const started: { readonly child: ChildProcess; readonly ended: Promise<unknown> }[] = [];
  before(async () => {
    real = await apptainer();
  });
  after(() => {
    real[Symbol.dispose]();
  });
  beforeEach(() => {
    directory = temporaryDirectory();
  });
  afterEach(async () => {
    // A test that failed leaves its Pod.
    for (const { child, ended } of started.splice(0)) {
      if (child.exitCode === null) child.kill('SIGTERM');
      await ended;
    }
  });

  /** @param tools a directory with programs that the machine has instead of its own */
  function start(
    data: RetrievedPodData,
    context: Partial<PlanContext> = {},
    tools = directory,
    how: SpawnOptions = {},
  ) {
    const { payload } = planned(data, { imagePaths: [real.image], ...context });
    const [given, scratch] = [join(directory, 'payload'), join(directory, 'scratch')];
    for (const one of [given, scratch]) mkdirSync(one);
    for (const { name, mode, content } of payload.files ?? [])
      writeFileSync(join(given, name), Buffer.from(content, 'base64'), { mode });
    const env = {
      PATH: `${tools}:${real.bin}:${process.env['PATH'] ?? ''}`,
      HOME: directory,
      THRESHER_PAYLOAD_DIR: given,
      _CONDOR_SCRATCH_DIR: scratch,
      OF_THE_MACHINE: 'yes',
    };
    // As a job: root is another case to apptainer.
    const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    if (user.uid !== undefined)
      for (const one of [directory, given, scratch, ...readdirSync(given).map((name) => join(given, name))])
        chownSync(one, user.uid, user.gid);
    const child = spawn('sh', ['run.sh'], {
      cwd: given,
      stdio: ['ignore', 'ignore', 'inherit'],
      ...user,
      ...how,
      env: { ...env, ...how.env },
    });
    const log = (name: string) => readFileSync(join(scratch, `${name}.log`), 'utf8');
    const report = () => {
      const path = join(scratch, 'pod-status.json');
      const read = existsSync(path) ? readReport(readFileSync(path, 'utf8')) : undefined;
      return typeof read === 'object' ? read.containers : {};
    };
    const ended = once(child, 'close').then(([code]) => code as number);
    started.push({ child, ended });
    return { child, ended, log, report, scratch };
  }

  /**
   * Programs that the machine has instead of its own: each does what these lines say, and then its work.
   * @param linesOf by name of the program, for the directory that holds them and what they tell
   * @param marks files of that directory in which they tell it, whoever they run as
   */
  function toolsOfMachine(
    linesOf: (place: string) => Readonly<Record<string, readonly string[]>>,
    ...marks: readonly string[]
  ) {
    const place = join(directory, 'tools');
    mkdirSync(place);
    for (const mark of marks) {
      writeFileSync(join(place, mark), '');
      chmodSync(join(place, mark), 0o666);
    }
    for (const [name, lines] of Object.entries(linesOf(place))) {
      const own = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
      const script = ['#!/bin/sh', ...lines, `exec ${own} "$@"`, ''].join('\n');
      writeFileSync(join(place, name), script, { mode: 0o755 });
    }
    return { place, told: (mark: string) => readFileSync(join(place, mark), 'utf8') };
  }

  const isReady = (report: () => ReturnType<ReturnType<typeof start>['report']>) =>
    until('it is ready', () => {
      const { main } = report();
      if (main?.exitCode !== undefined) throw new Error(`it ended before: ${JSON.stringify(main)}`);
      return main?.ready === true;
    });

  it('gives words, variables and files as they are, and shares an emptyDir of which one container may only read', async () => {
    const value = `two  words "$HOME" \`id\` \\ $(id)\nline\n`;
    const show = [
      `printf '[%s]' "$@" "$V"`,
      'cat /conf/app.conf /etc/one.conf',
      'stat -c %a /conf/app.conf',
      'cat /shared/from-init',
      '{ echo no >/shared/file; } 2>/dev/null || echo refused',
      '{ echo no >/conf/file; } 2>/dev/null || echo refused',
      'echo "${OF_THE_MACHINE:-clean} $PATH $HOME"; pwd',
    ].join('; ');
    const both = [{ name: 'shared', mountPath: '/shared' }];
    const configMaps = [{ metadata: { name: 'cm' }, data: { 'app.conf': 'line\n' } }];
    const data = podData(
      {
        image: real.image,
        command: ['sh', '-c', show, 'sh', value, '', '*'],
        env: [
          { name: 'V', value },
          { name: 'PATH', value: '/bin:/$none' },
          { name: 'HOME', value: '/no such home' },
        ],
        workingDir: '/tmp',
        volumeMounts: [
          { name: 'shared', mountPath: '/shared', readOnly: true },
          { name: 'conf', mountPath: '/conf' },
          { name: 'conf', mountPath: '/etc/one.conf', subPath: 'app.conf' },
        ],
      },
      {
        initContainers: [
          {
            name: 'init',
            image: real.image,
            command: ['sh', '-c', 'echo init >/shared/from-init'],
            volumeMounts: both,
          },
        ],
        volumes: [
          { name: 'shared', emptyDir: {} },
          { name: 'conf', configMap: { name: 'cm', defaultMode: 0o440 } },
        ],
      },
      { container: [{ name: 'main', configMaps }] },
    );
    const env = ['my.var', 'UID', 'EUID', 'GID', 'RANDOM', 'OLDPWD'].map((name) => ({ name, value: 'x y' }));
    const odd = { name: 'odd', image: real.image, command: ['env'], env };
    const spec = { ...data.pod.spec, containers: [...data.pod.spec.containers, odd] };
    const { ended, log } = start({ ...data, pod: { ...data.pod, spec } });
    expect(await ended, log('init') + log('main')).to.equal(0);
    expect(log('odd').split('\n')).to.include.members(env.map(({ name, value }) => `${name}=${value}`));
    expect(log('main')).to.equal(
      `[${value}][][*][${value}]line\nline\n440\ninit\nrefused\nrefused\nclean /bin:/$none /no such home\n/tmp\n`,
    );
  });

  it('ends a container by SIGTERM, and its probes and hooks see its /tmp', async () => {
    const { child, ended, log, report } = start(
      podData(
        {
          image: real.image,
          command: [
            'sh',
            '-c',
            `trap 'cat /tmp/stopping; exit 0' TERM; echo >/tmp/ready; while :; do sleep 1; done`,
          ],
          env: [
            { name: 'SAID', value: 'two\n"lines" $HOME' },
            { name: 'my.var', value: 'odd' },
          ],
          workingDir: '/etc',
          readinessProbe: { exec: { command: ['cat', '/tmp/ready'] }, periodSeconds: 1, timeoutSeconds: 60 },
          // It is among the processes of the container, with its environment and directory.
          livenessProbe: {
            exec: { command: ['sh', '-c', 'cat /proc/[0-9]*/cmdline | busybox grep -q "rea[d]y;"'] },
            periodSeconds: 1,
            failureThreshold: 1,
            timeoutSeconds: 60,
          },
          lifecycle: {
            preStop: { exec: { command: ['sh', '-c', 'pwd >/tmp/stopping; env >>/tmp/stopping'] } },
          },
        },
        { terminationGracePeriodSeconds: 20 },
      ),
    );
    await isReady(report);
    child.kill('SIGTERM');
    expect(await ended).to.equal(143);
    expect(log('main'))
      .to.match(/^\/etc\n/)
      .and.to.contain('SAID=two\n"lines" $HOME\n')
      .and.to.contain('my.var=odd\n');
  });

  it('is probed in its own files also where the first ways into it were too slow', async () => {
    // `timeout` has to kill the first two.
    const slow = (seen: string) => [`echo >>${seen}`, `[ "$(wc -l <${seen})" -gt 2 ] || exec sleep 3600`];
    const { place, told } = toolsOfMachine((tools) => ({ nsenter: slow(`${tools}/seen`) }), 'seen');
    const { child, ended, report } = start(
      podData({
        image: real.image,
        command: ['sh', '-c', 'echo >/tmp/up; while :; do sleep 1; done'],
        // In another container of its image there is no such file.
        livenessProbe: {
          exec: { command: ['cat', '/tmp/up'] },
          periodSeconds: 1,
          failureThreshold: 1,
          timeoutSeconds: 60,
        },
        readinessProbe: { exec: { command: ['cat', '/tmp/up'] }, periodSeconds: 1, timeoutSeconds: 60 },
      }),
      {},
      place,
    );
    await isReady(report);
    expect(told('seen').length).to.be.greaterThan(2);
    child.kill('SIGTERM');
    await ended;
    expect(report()['main']).to.include({ exitCode: 143 });
  });

  it('is entered where it was judged: by what is open, and not at the process to which its first one points', async () => {
    const { place, told } = toolsOfMachine((tools) => ({ nsenter: [`echo "$*" >>${tools}/seen`] }), 'seen');
    const loop = 'while :; do sleep 1; done';
    // Without apptainer's init it is itself the first process, and may call itself as it likes.
    const script = `MARK=child sh -c '${loop}' & echo appinit >/proc/self/comm; trap 'exit 0' TERM; ${loop}`;
    const { child, ended, log, report } = start(
      podData(
        {
          image: real.image,
          command: ['sh', '-c', script],
          env: [{ name: 'MARK', value: 'first' }],
          readinessProbe: {
            exec: { command: ['sh', '-c', 'echo "$MARK" /proc/$$$$/fd/[4-9] >/proc/1/fd/1'] },
            periodSeconds: 1,
            timeoutSeconds: 60,
          },
        },
        {},
        { annotations: { 'slurm-job.vk.io/singularity-options': '--no-init' } },
      ),
      {},
      place,
    );
    await isReady(report);
    child.kill('SIGTERM');
    await ended;
    // With nothing open but its input and output.
    expect(log('main')).to.match(/^first \/proc\/\d+\/fd\/\[4-9\]\n/);
    const ways = [...told('seen').matchAll(/--(user|mount|pid|ipc|root|wd)=(\S+)/g)];
    expect(new Set(ways.map(([, name]) => name))).to.have.length(6);
    for (const [, , path] of ways) expect(path).to.match(/^\/proc\/self\/fd\/\d$/);
    expect(told('seen')).to.not.match(/(^| )(-t|--target)\b/m);
  });

  it('is probed in its own files also where it becomes apptainer while the runner looks at it', async () => {
    const { place, told } = toolsOfMachine(
      (tools) => ({
        // The container waits for the look at its words, and the look for apptainer.
        setsid: [`case $* in *--pid*) until [ -s ${tools}/looked ]; do sleep 0.05; done ;; esac`],
        tr: [
          'of=$(readlink /proc/self/fd/0)',
          `case $of in */cmdline) echo >>${tools}/looked; until grep -q starter "\${of%cmdline}comm"; do sleep 0.05; done ;; esac`,
        ],
        nsenter: [`echo >>${tools}/entered`],
      }),
      'looked',
      'entered',
    );
    const readinessProbe = { exec: { command: ['cat', '/tmp/up'] }, periodSeconds: 1, timeoutSeconds: 60 };
    const command = ['sh', '-c', 'echo >/tmp/up; while :; do sleep 1; done'];
    const { child, ended, report } = start(
      podData({ image: real.image, command, readinessProbe }),
      {},
      place,
    );
    await isReady(report);
    expect(told('entered')).to.not.equal('');
    child.kill('SIGTERM');
    await ended;
  });

  it('hole 2: has no program of its volumes run outside of it, whatever its PATH says', async () => {
    const lie = `printf '#!/bin/sh\\necho was here >>/%s/out\\nexec /usr/bin/tr "$@"\\n' "$1" >/v/tr; chmod +x /v/tr`;
    const place = '$(busybox grep " /v " /proc/self/mountinfo | busybox cut -d " " -f 4)';
    const script = `set -- "${place}"; ${lie}; exec env -i "PATH=$1" "Z=a\nb" /bin/sh -c 'echo >/tmp/ready; while :; do /bin/sleep 1; done'`;
    const { child, ended, log, report, scratch } = start(
      podData(
        {
          image: real.image,
          command: ['sh', '-c', script],
          volumeMounts: [{ name: 'v', mountPath: '/v' }],
          readinessProbe: {
            exec: { command: ['/bin/cat', '/tmp/ready'] },
            periodSeconds: 1,
            timeoutSeconds: 5,
          },
        },
        { volumes: [{ name: 'v', emptyDir: {} }] },
      ),
    );
    await isReady(report);
    const volume = join(scratch, '.pod/volumes/v');
    expect(readdirSync(volume), log('main')).to.deep.equal(['tr']);
    child.kill('SIGTERM');
    await ended;
  });

  it('hole 2: gives no variable of it to a program of the machine, and its probes have them all', async () => {
    const programs = ['env', 'nsenter', 'timeout'];
    const { place, told } = toolsOfMachine(
      (tools) =>
        Object.fromEntries(
          // The environment as it came: the shell of this script has already changed its own.
          programs.map((name) => [name, [`tr '\\000' '\\n' </proc/$$/environ >>${tools}/${name}.seen`]]),
        ),
      ...programs.map((name) => `${name}.seen`),
    );
    const names = [
      'LANGUAGE',
      'LC_ALL',
      'LD_LIBRARY_PATH',
      'HISTCMD',
      'TZ',
      'BASH_ENV',
      'UID',
      'il_x',
      'my.var',
    ];
    const [value, words] = ['$(printf "of the\\nuser") \\\\n', 'of the\nuser \\n'];
    const given = names.map((name) => `"${name}=${value}"`).join(' ');
    const waits = 'while :; do /bin/sleep 1; done';
    // Until the main program has become that one, its environment has none of the variables.
    const probe = 'test -n "$TZ" && env >/tmp/seen && mv /tmp/seen /tmp/env';
    const { child, ended, log, report } = start(
      podData({
        image: real.image,
        command: ['sh', '-c', `exec env -i PATH=/bin ${given} /bin/sh -c '${waits}'`],
        readinessProbe: {
          exec: { command: ['sh', '-c', probe] },
          periodSeconds: 1,
          timeoutSeconds: 5,
        },
        lifecycle: { preStop: { exec: { command: ['sh', '-c', 'cat /tmp/env >/proc/1/fd/1'] } } },
      }),
      {},
      place,
    );
    await isReady(report);
    child.kill('SIGTERM');
    await ended;
    for (const name of names) expect(log('main')).to.contain(`${name}=${words}`);
    for (const name of programs) {
      const seen = told(`${name}.seen`);
      expect(seen, `${name} ran`).to.contain('PATH=');
      expect(seen).to.not.contain('of the');
    }
  });

  it('hole 2: mounts no path of a volume that goes by a link: another container could change what is behind it', async () => {
    const image = real.image;
    const links =
      'mkdir -p /v/a/x; echo >/v/file; ln -s a /v/b; ln -s .. /v/up; ln -s / /v/m; ln -s file /v/f';
    const paths = ['a/x', 'a/new', 'file', 'b/x', 'b/new', 'up', 'up/v', 'm', 'f'];
    const containers = paths.map((subPath, index) => ({
      name: `c${index}`,
      image,
      command: ['true'],
      volumeMounts: [{ name: 'v', mountPath: '/x', subPath, readOnly: true }],
    }));
    const init = {
      name: 'init',
      image,
      command: ['sh', '-c', links],
      volumeMounts: [{ name: 'v', mountPath: '/v' }],
    };
    const spec = { containers, initContainers: [init], volumes: [{ name: 'v', emptyDir: {} }] };
    const { ended, report } = start(podData({}, spec));
    await ended;
    const codes = paths.map((path, index) => [path, report()[`c${index}`]?.exitCode]);
    expect(Object.fromEntries(codes)).to.deep.equal({
      'a/x': 0,
      'a/new': 0,
      file: 0,
      'b/x': 125,
      'b/new': 125,
      up: 125,
      'up/v': 125,
      m: 125,
      f: 125,
    });
    expect(report()['c3']?.message).to.equal(
      'the path v/b/x of its volume is, or goes by, a link, or it cannot be made',
    );
  });

  describe('hole 2: has no capability, by which a container could write what it mounts for reading,', () => {
    const probed = 'cat /proc/self/status >/tmp/part && mv /tmp/part /tmp/probed';
    const waits = 'cat /proc/self/status; until [ -e /tmp/probed ]; do sleep 0.1; done; cat /tmp/probed';
    const container = () => ({
      image: real.image,
      command: ['sh', '-c', waits],
      readinessProbe: {
        exec: { command: ['sh', '-c', probed] },
        periodSeconds: 1,
        timeoutSeconds: 60,
        failureThreshold: 60,
      },
    });
    const capabilities = (log: string) => [...log.matchAll(/^Cap(?:Eff|Prm):.*/gm)].map(([line]) => line);
    const none = ['CapPrm:\t0000000000000000', 'CapEff:\t0000000000000000'];

    const values: Readonly<Record<string, string>> = {
      '--no-mount': ' hostfs',
      '--hostname': ' pod',
      '--bind': ' /usr/share',
      '-B': ' /usr/share',
    };
    for (const option of Object.keys(podOptions))
      it(`by the option ${option}, as a container or as its probe`, async () => {
        const words = `${option}${values[option] ?? ''}`;
        const annotations = { 'slurm-job.vk.io/singularity-options': words };
        // --nvccli wants that program, here one that does nothing, and a place for what it would bring.
        writeFileSync(join(directory, 'nvidia-container-cli'), '#!/bin/sh\n', { mode: 0o755 });
        const place = join(real.image, 'usr/bin');
        mkdirSync(place, { recursive: true });
        chmodSync(place, 0o777);
        const { ended, log } = start(podData(container(), {}, { annotations }), {
          hostPaths: ['/usr/share'],
          readOnlyImages: false,
        });
        await ended;
        expect(capabilities(log('main')), log('main')).to.deep.equal([...none, ...none]);
      });

    it('by variables of the machine', async () => {
      const env = Object.fromEntries(
        ['APPTAINER', 'SINGULARITY'].flatMap((name) => [
          [`${name}_FAKEROOT`, '1'],
          [`${name}_ADD_CAPS`, 'CAP_SYS_ADMIN'],
        ]),
      );
      const { ended, log } = start(podData(container()), {}, directory, { env });
      await ended;
      expect(capabilities(log('main')), log('main')).to.deep.equal([...none, ...none]);
    });
  });

  it('kills a container that does not listen, with all that it started', async () => {
    const [mark, script] = [
      '86399',
      `trap '' TERM; sleep 86399 & echo >/shared/up; while :; do sleep 1; done`,
    ];
    const { child, ended, report } = start(
      podData(
        {
          image: real.image,
          command: ['sh', '-c', script],
          volumeMounts: [{ name: 'shared', mountPath: '/shared' }],
          readinessProbe: { exec: { command: ['cat', '/shared/up'] }, periodSeconds: 1, timeoutSeconds: 5 },
        },
        { terminationGracePeriodSeconds: 1, volumes: [{ name: 'shared', emptyDir: {} }] },
      ),
    );
    await isReady(report);
    child.kill('SIGTERM');
    expect(await ended).to.equal(137);
    expect(report()['main']).to.include({ exitCode: 137, signal: 9, reason: 'Terminated' });
    const isAlive = () =>
      readdirSync('/proc').some((pid) => {
        try {
          return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `sleep\0${mark}\0`;
        } catch {
          return false;
        }
      });
    await until('nothing of it is left', () => !isAlive());
  });

  it('is not ended by a container, a probe or a hook that kills its own group of processes', async () => {
    const volumeMounts = [{ name: 'shared', mountPath: '/shared' }];
    const shell = (script: string) => ['sh', '-c', script];
    const main = 'while [ ! -e /shared/go ]; do sleep 0.1; done; echo last words; kill -KILL 0';
    const probe = '[ -e /shared/go ] || { echo >/shared/go; kill -KILL 0; }';
    const { child, ended, log, report } = start(
      podData(
        {},
        {
          terminationGracePeriodSeconds: 5,
          volumes: [{ name: 'shared', emptyDir: {} }],
          containers: [
            { name: 'main', image: real.image, command: shell(main), volumeMounts },
            {
              name: 'beside',
              image: real.image,
              command: shell('trap "exit 0" TERM; while :; do sleep 0.1; done'),
              volumeMounts,
              readinessProbe: { exec: { command: shell(probe) }, periodSeconds: 1, timeoutSeconds: 60 },
              lifecycle: { preStop: { exec: { command: shell('kill -KILL 0') } } },
            },
          ],
        },
      ),
      {},
      directory,
      { detached: true },
    );
    await until('it ended itself', () => report()['main']?.exitCode !== undefined);
    await until('the other one is ready', () => report()['beside']?.ready === true);
    child.kill('SIGTERM');
    expect(await ended).to.equal(143);
    expect(log('main')).to.equal('last words\n');
    expect(report()['main']).to.include({ exitCode: 137, signal: 9 });
  });

  it('A23: all containers and probes are in the mesh network that pre-exec makes, and a message of a container arrives', async () => {
    const mesh = `cat <<'EOFMESH' >$TMPDIR/mesh.sh
#!/bin/bash
exec unshare --user --map-root-user --net --mount "$@"
EOFMESH
`;
    const devices = 'cat /proc/net/dev';
    const { ended, log, report } = start(
      podData(
        {
          image: real.image,
          command: [
            'sh',
            '-c',
            `${devices}; while ! cat /tmp/seen 2>/dev/null; do sleep 0.1; done; echo 'said "so"' >/var/said; exit 3`,
          ],
          readinessProbe: {
            // The container must not see the file while it is empty.
            exec: { command: ['sh', '-c', `${devices} >/tmp/part && mv /tmp/part /tmp/seen`] },
            periodSeconds: 1,
            timeoutSeconds: 10,
          },
          terminationMessagePath: '/var/said',
        },
        {},
        { annotations: { 'slurm-job.vk.io/pre-exec': mesh } },
      ),
      { preExec: true },
    );
    expect(await ended, log('main')).to.equal(3);
    const names = [...log('main').matchAll(/^ *([\w-]+):/gm)].map(([, name]) => name);
    expect([...new Set(names)]).to.deep.equal(['lo']);
    expect(names).to.have.length(2);
    expect(report()['main']).to.include({ exitCode: 3, reason: 'Error', message: 'said "so"' });
  });
});
