import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type { Container, RetrievedPodData } from '../../../../src/clients/interlink/wire.ts';
import type { PlanContext } from '../../../../src/sources/interlink/pod/plan.ts';
import { readLogTimes } from '../../../../src/sources/interlink/pod/report.ts';
import { PodRunner, shells } from '../../../support/pod-runner.ts';
import { podData } from '../../../support/pods.ts';
import { until } from '../../../support/until.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

/** Values that a shell, an environment file or a template would take for more than text. */
const hostile = [
  'two  words',
  '',
  '$HOME `id` $(id) ${x}',
  `quotes ' " \\ \\n`,
  '; exit 9',
  '*',
  '-n',
  'a=b',
  'line\n\nline\n',
  '\r\na\r\n\r\r\nb\r',
  'ü\u{1F41F}',
  '%s',
];

for (const shell of shells)
  describe(`a Pod's runner, by ${shell}`, () => {
    let directory: string;
    let runner: PodRunner;
    beforeEach(() => {
      directory = temporaryDirectory();
      runner = new PodRunner(shell, directory);
    });
    afterEach(async () => {
      await until('the job leaves no process', () => runner.left().length === 0);
    });
    const start = (data: RetrievedPodData, context: Partial<PlanContext> = {}) => runner.start(data, context);
    const image = () => join(directory, 'image.sif');
    const main = (script: string, rest: Partial<Container> = {}) => runner.main(script, rest);
    const sh = main;
    const calls = () => runner.calls();

    it('A6, and defect 11: each container has its own exit code, and the job the highest', async () => {
      const containers = [
        main('exit 0'),
        { ...main('exit 3'), name: 'b' },
        { ...main('kill -9 $$$$'), name: 'c' },
      ];
      const { code, report } = await start(podData({}, { containers })).ended;
      expect(code).to.equal(137);
      expect(report['main']).to.include({
        state: 'terminated',
        exitCode: 0,
        reason: 'Completed',
        init: false,
      });
      expect(report['b']).to.include({ exitCode: 3, reason: 'Error' });
      expect(report['c']).to.include({ exitCode: 137, signal: 9 });
      expect(report['main']?.startedAt).to.match(/^\d{4}-.*Z$/);
      expect(report['main']?.finishedAt).to.match(/^\d{4}-.*Z$/);
    });

    it('C5 of the field: on a machine without apptainer each container says so, and not by its code alone', async () => {
      const PATH = join(directory, 'machine');
      mkdirSync(PATH);
      for (const name of readdirSync('/usr/bin'))
        if (!/^(apptainer|singularity)$/.test(name)) symlinkSync(join('/usr/bin', name), join(PATH, name));
      const { code, report } = await runner.start(
        podData({ image: image(), command: ['true'] }),
        {},
        { PATH },
      ).ended;
      expect(code).to.equal(1);
      expect(report['main']).to.include({
        state: 'terminated',
        exitCode: 1,
        reason: 'NoRuntime',
        message: 'neither apptainer nor singularity is on this machine',
      });
    });

    it('A7, and defect 10: init containers run in their order, and a failed one ends the Pod without the others', async () => {
      const order = `echo $NAME >>${directory}/order`;
      const init = (name: string, script = order): Container => ({
        ...main(script, { env: [{ name: 'NAME', value: name }] }),
        name,
      });
      const good = start(
        podData(sh(order, { env: [{ name: 'NAME', value: 'main' }] }), {
          initContainers: [init('i'), init('j')],
        }),
      );
      expect((await good.ended).report['j']).to.include({ init: true, state: 'terminated', exitCode: 0 });
      expect(readFileSync(join(directory, 'order'), 'utf8')).to.equal('i\nj\nmain\n');
      const bad = start(podData(sh('exit 0'), { initContainers: [init('i', 'exit 4'), init('j')] }));
      const { code, report } = await bad.ended;
      expect(code).to.equal(4);
      expect(readdirSync(bad.scratch)).to.include.members(['i.log', 'j.log', 'main.log', 'pod-status.json']);
      expect(report['i']).to.include({ exitCode: 4 });
      for (const name of ['j', 'main'])
        expect(report[name]).to.include({
          state: 'terminated',
          exitCode: 1,
          reason: 'InitFailed',
          message: 'the init container i ended with code 4',
        });
    });

    it('A15 and A16: each word and each variable is what it was, and nothing of the machine is beside them', async () => {
      const shows = `for one in "$@"; do printf '[%s]' "$one"; done; env -0 | tr '\\0' '\\1'`;
      const env = hostile.map((value, index) => ({ name: `V_${index}`, value }));
      const own = ['my.var', 'line', 'decoded', 'IFS', 'PATH', 'il_line', 'UID', 'OPTIND', 'payload', 'i'];
      const { ended, file } = start(
        podData({
          image: image(),
          // bash hands on names that are none of a shell.
          command: ['bash', '-c', shows, 'sh', ...hostile],
          args: ['$(V_0)', '$$(V_0)', '$(none)'],
          env: [...env, ...own.map((name) => ({ name, value: `of ${name} $HOME` }))],
        }),
      );
      const { code, errors } = await ended;
      expect([code, errors]).to.deep.equal([0, '']);
      const [words = '', ...variables] = file('main.log').split(/\](?=[^\[\]]*=[^\u0001]*\u0001)|\u0001/);
      expect(`${words}]`).to.equal(
        [...hostile, 'two  words', '$(V_0)', '$(none)'].map((one) => `[${one}]`).join(''),
      );
      for (const { name, value } of env) expect(variables).to.include(`${name}=${value}`);
      for (const name of ['my.var', 'line', 'decoded', 'il_line', 'payload', 'i', 'UID'])
        expect(variables).to.include(`${name}=of ${name} $HOME`);
      for (const name of ['PATH', 'IFS', 'OPTIND'])
        expect(variables).to.include(`APPTAINERENV_${name}=of ${name} $HOME`);
      expect(variables.filter((one) => one.startsWith('OF_THE_MACHINE'))).to.deep.equal([]);
      expect(calls()[0]).to.match(
        /^\[--silent\]\[exec\]\[--contain\]\[--ipc\]\[--pid\]\[--pwd\]\[\/\]\[--workdir\]/,
      );
    });

    it('hole 2: gives variables of the user to the image alone: apptainer, outside of it, may be a script', async () => {
      const mark = join(directory, 'outside');
      writeFileSync(join(directory, 'evil'), `touch ${mark}`);
      const evil: Readonly<Record<string, string>> = {
        BASH_ENV: join(directory, 'evil'),
        'BASH_FUNC_printf%%': `() { touch ${mark}; }`,
        _WRAPPER_EXEC_CMD: join(directory, 'evil'),
        https_proxy: 'http://127.0.0.1:9',
        '--split-string': `sh -c 'touch ${mark}'`,
        '-S': `touch ${mark}`,
      };
      const env = Object.entries(evil).map(([name, value]) => ({ name, value }));
      const { ended, file } = start(podData({ image: image(), command: ['sh', '-c', 'env'], env }));
      const { code, errors } = await ended;
      expect([code, errors]).to.deep.equal([0, '']);
      expect(existsSync(mark)).to.equal(false);
      const seen = file('main.log').split('\n');
      for (const name of ['BASH_ENV', '_WRAPPER_EXEC_CMD', 'https_proxy'])
        expect(seen).to.include(`${name}=${evil[name] ?? ''}`);
    });

    it('an environment is of its container alone', async () => {
      const containers = ['a', 'b'].map((name) => ({
        ...main('echo "$WHO"', { env: [{ name: 'WHO', value: name }] }),
        name,
      }));
      const { ended, file } = start(podData({}, { containers }));
      await ended;
      expect([file('a.log'), file('b.log')]).to.deep.equal(['a\n', 'b\n']);
    });

    it('A17 and A19: mounts are the files of the volume with their modes, and a shared directory', async () => {
      // The stand-in looks at the files while they are there.
      const look = `find "${directory}/scratch/.pod/volumes" -type f -exec stat -c '%a' {} + -exec od -An -tx1 {} +`;
      const volumeMounts = [
        { name: 'conf', mountPath: '/conf' },
        { name: 'conf', mountPath: '/etc/one', subPath: 'a.bin' },
        { name: 'scratch', mountPath: '/scratch', readOnly: true },
      ];
      const volumes = [
        { name: 'conf', configMap: { name: 'cm', items: [{ key: 'bin', path: 'a.bin', mode: 0o440 }] } },
        { name: 'scratch', emptyDir: {} },
      ];
      const configMaps = [{ metadata: { name: 'cm' }, binaryData: { bin: 'AAH/' } }];
      const { ended, file, scratch } = start(
        podData(sh(look, { volumeMounts }), { volumes }, { container: [{ name: 'main', configMaps }] }),
      );
      await ended;
      expect(file('main.log')).to.equal('440\n 00 01 ff\n');
      const below = `${scratch}/.pod/volumes`;
      expect(calls()[0]).to.contain(
        `[--bind][${below}/conf:/conf:ro][--bind][${below}/conf/a.bin:/etc/one:ro][--bind][${below}/scratch:/scratch:ro]`,
      );
    });

    it('hole 2: mounts and opens what the operator allows by where it really is', async () => {
      const [allowed, secret] = [join(directory, 'allowed'), join(directory, 'secret')];
      for (const made of [join(allowed, 'real'), secret]) mkdirSync(made, { recursive: true });
      for (const file of [join(allowed, 'x:1.sif'), join(secret, 'x:1.sif'), join(secret, 'plain')])
        writeFileSync(file, '');
      const links = { inner: 'real', out: secret, up: '..', 'out.sif': join(secret, 'x:1.sif') };
      for (const [name, to] of Object.entries(links)) symlinkSync(to, join(allowed, name));
      const rules = { hostPaths: [allowed], imagePaths: [allowed] };
      const mounted = async (path: string, subPath?: string) => {
        const volumeMounts = [{ name: 'v', mountPath: '/data', ...(subPath !== undefined && { subPath }) }];
        const image = join(allowed, 'x:1.sif');
        const data = podData(
          { image, command: ['true'], volumeMounts },
          { volumes: [{ name: 'v', hostPath: { path } }] },
        );
        const { report } = await start(data, rules).ended;
        return report['main'];
      };
      expect(await mounted(join(allowed, 'inner'))).to.include({ exitCode: 0 });
      expect(calls().at(-1)).to.contain(`[--bind][${allowed}/real:/data:rw][${allowed}/x:1.sif]`);
      for (const [path, subPath] of [
        [join(allowed, 'out')],
        [join(allowed, 'out/plain')],
        [join(allowed, 'up')],
        [allowed, 'out'],
      ] as const) {
        const state = await mounted(path, subPath);
        expect(state, path).to.include({ exitCode: 125 });
        expect(state?.message).to.match(/leads out of the directories of this machine that may be mounted$/);
      }
      expect((await mounted(join(allowed, 'none')))?.message).to.match(/^this machine has no /);
      const bound = { 'slurm-job.vk.io/singularity-mounts': `--bind ${allowed}/out:/x` };
      const container = { image: join(allowed, 'x:1.sif'), command: ['true'] };
      const { report } = await start(podData(container, {}, { annotations: bound }), rules).ended;
      expect(report['main']).to.include({ exitCode: 125 });
      expect(calls()).to.have.length(1);
      const opened = await start(podData({ ...container, image: join(allowed, 'out.sif') }), rules).ended;
      expect(opened.report['main']).to.include({
        exitCode: 1,
        reason: 'ErrImagePull',
        message: `the image ${allowed}/out.sif leads out of the directories with images of this machine`,
      });
      expect(calls()).to.have.length(1);
    });

    it('defect 4: leaves the report and the logs, and wipes all else', async () => {
      const { ended, scratch, given, file } = start(podData(sh('echo a; echo b >&2')));
      expect((await ended).code).to.equal(0);
      expect(readdirSync(scratch).toSorted()).to.deep.equal([
        'main.log',
        'main.log.times',
        'pod-status.json',
      ]);
      expect(readdirSync(given)).to.deep.equal(['run.sh']);
      expect(readLogTimes(file('main.log.times')).at(-1)?.bytes).to.equal(file('main.log').length);
    });

    it('A20: a container is ready when its probe says so, and a failed liveness probe ends it', async () => {
      const server = createServer((request, response) => {
        const isMine = request.headers.authorization === 'Basic "a\\b" $HOME';
        response.statusCode = isMine && existsSync(join(directory, 'ok')) ? 200 : 500;
        response.end(request.url);
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      try {
        const { ended, report } = start(
          podData(
            sh('exec sleep 60', {
              startupProbe: {
                exec: { command: ['test', '-e', join(directory, 'up')] },
                periodSeconds: 1,
                failureThreshold: 60,
              },
              readinessProbe: {
                httpGet: {
                  path: '/x',
                  port,
                  httpHeaders: [{ name: 'Authorization', value: 'Basic "a\\b" $HOME' }],
                },
                periodSeconds: 1,
              },
              livenessProbe: { tcpSocket: { port }, periodSeconds: 1, failureThreshold: 2 },
            }),
            { terminationGracePeriodSeconds: 1 },
          ),
        );
        await until('it runs', () => report()?.containers['main']?.state === 'running');
        expect(report()?.containers['main']?.ready).to.equal(false);
        writeFileSync(join(directory, 'ok'), '');
        writeFileSync(join(directory, 'up'), '');
        await until('it is ready', () => report()?.containers['main']?.ready === true);
        server.closeAllConnections();
        server.close();
        const { code, report: last } = await ended;
        expect(code).to.be.oneOf([137, 143]);
        expect(last['main']).to.include({
          reason: 'ProbeFailed',
          message: 'the liveness probe failed 2 times',
        });
      } finally {
        server.close();
      }
    });

    it('a container that ends during its preStop hook: no signal goes to the process that has its pid by then', async () => {
      const at = (name: string) => join(directory, name);
      const script = (name: string, text: string) => {
        writeFileSync(at(name), `cd ${directory}\n${text}`);
        return ['sh', at(name)];
      };
      const program = 'echo $$ >pid.new; mv pid.new pid; exec sleep 3600';
      const hook = `pid=$(cat pid)
read -r _ _ _ looks _ </proc/$PPID/stat
kill -KILL $pid
until [ -f scratch/.pod/s/0/code ]; do sleep 0.1; done
while :; do
  echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid
  setsid sh bystander </dev/null >/dev/null 2>&1 &
  [ $! != $pid ] || break
  kill -KILL $!
done
until [ -f up ]; do sleep 0.1; done
echo $looks >looks.new; mv looks.new looks`;
      script(
        'bystander',
        `trap 'echo >signalled' TERM; [ $$ != "$(cat pid)" ] || echo >up; sleep 3600 & wait`,
      );
      // The Pod goes on until what told the container to end has ended.
      const beside =
        'until [ -f looks ]; do sleep 0.1; done; while [ -d "/proc/$(cat looks)" ]; do sleep 0.1; done';
      const containers = [
        {
          ...main('', { command: script('program', program) }),
          livenessProbe: {
            exec: { command: ['test', '!', '-f', at('pid')] },
            periodSeconds: 1,
            failureThreshold: 1,
          },
          lifecycle: { preStop: { exec: { command: script('hook', hook) } } },
        },
        { ...main('', { command: script('waits', beside) }), name: 'beside' },
      ];
      // Where a test may say which pid comes next.
      const own = `unshare --user --map-root-user --pid --fork --mount-proc ${shell}`;
      const { code, report } = await new PodRunner(own, directory).start(podData({}, { containers })).ended;
      expect(code).to.equal(137);
      expect(report['main']).to.include({ exitCode: 137, reason: 'ProbeFailed' });
      expect(existsSync(at('up')), 'its pid was given again').to.equal(true);
      expect(existsSync(at('signalled'))).to.equal(false);
    });

    it('A5 and A21: a job that is told to end runs preStop, ends its containers and is no success', async () => {
      const lifecycle = {
        postStart: { exec: { command: ['touch', join(directory, 'started')] } },
        preStop: { exec: { command: ['touch', join(directory, 'stopping')] } },
      };
      const script = `trap 'exit 0' TERM; while :; do sleep 0.1; done`;
      const { child, ended } = start(podData(sh(script, { lifecycle })));
      await until('postStart ran', () => existsSync(join(directory, 'started')));
      child.kill('SIGTERM');
      const { code, report } = await ended;
      expect(existsSync(join(directory, 'stopping'))).to.equal(true);
      expect(code).to.equal(143);
      expect(report['main']).to.include({ exitCode: 143, signal: 15, reason: 'Terminated' });
    });

    it('ends a Pod after activeDeadlineSeconds', async () => {
      const { code, report } = await start(podData(sh('exec sleep 1000'), { activeDeadlineSeconds: 1 }))
        .ended;
      expect(code).to.equal(143);
      expect(report['main']).to.include({ exitCode: 143, reason: 'DeadlineExceeded' });
    });

    it('kills a container that does not listen after the grace', async () => {
      // Told by a deadline, it could end before its trap is set.
      const script = `trap '' TERM; touch ${directory}/deaf; while :; do sleep 0.1; done`;
      const { child, ended } = start(podData(sh(script), { terminationGracePeriodSeconds: 1 }));
      await until('it does not listen', () => existsSync(join(directory, 'deaf')));
      child.kill('SIGTERM');
      const { code, report } = await ended;
      expect(code).to.equal(137);
      expect(report['main']).to.include({ exitCode: 137, reason: 'Terminated' });
    });

    it('pulls an image once, with the login of its registry', async () => {
      const auths = { 'example.org': { username: 'me', password: 'a b$c' } };
      const content = Buffer.from(JSON.stringify({ auths })).toString('base64');
      const secrets = [{ metadata: { name: 'pull' }, data: { '.dockerconfigjson': content } }];
      const containers = ['a', 'b'].map((name) => ({
        ...main('exit 0', { image: 'example.org/x:1' }),
        name,
      }));
      const data = podData(
        {},
        { containers, imagePullSecrets: [{ name: 'pull' }] },
        { container: [{ name: 'a', secrets }] },
      );
      mkdirSync(join(directory, 'bin'));
      writeFileSync(
        join(directory, 'bin/oci-config.json'),
        '{"Env":["A=b"],"WorkingDir":"/srv/app","Labels":{}}',
      );
      expect((await start(data).ended).code).to.equal(0);
      // Both start where the image says.
      expect(calls().map((call) => call.includes('[--pwd][/srv/app]'))).to.deep.equal([true, true]);
      expect(readFileSync(join(directory, 'bin/pulls'), 'utf8')).to.equal(
        'me:a b$c docker://example.org/x:1 http://proxy.example.org\n',
      );
      writeFileSync(join(directory, 'bin/pull-code'), '1');
      const { report } = await start(data).ended;
      expect(report['a']).to.include({
        state: 'terminated',
        exitCode: 1,
        reason: 'ErrImagePull',
        message: 'the image cannot be pulled: FATAL: "no" such \\image',
      });
      expect(report['b']).to.include({ state: 'terminated', exitCode: 1, reason: 'NotStarted' });
    });

    it('A23 and A24: the operator may let Pods run commands before their containers, and a job script instead of them', async () => {
      const annotations = { 'slurm-job.vk.io/pre-exec': `echo before >>${directory}/order` };
      const script = `echo "main $OF_THE_PREFIX" >>${directory}/order`;
      await start(podData(sh(script), {}, { annotations }), {
        preExec: true,
        commandPrefix: 'export OF_THE_PREFIX=x',
      }).ended;
      expect(readFileSync(join(directory, 'order'), 'utf8')).to.equal('before\nmain \n');
      const jobScript = '#!/bin/sh\necho "from the script"; exit 6\n';
      const { ended, file } = start(podData(sh('exit 0'), {}, { jobScript }), { jobScript: true });
      const { code, report } = await ended;
      expect([code, report['main']?.exitCode, file('main.log')]).to.deep.equal([6, 6, 'from the script\n']);
    });

    it('sends each report to the daemon, with the token of its Pod', async () => {
      const got: { readonly authorization: string | undefined; readonly body: unknown }[] = [];
      const server = createServer((request, response) => {
        text(request).then(
          (body) => {
            got.push({ authorization: request.headers.authorization, body: JSON.parse(body) });
            response.end();
          },
          () => response.destroy(),
        );
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      const reportTo = (uid: string) => ({
        url: `http://127.0.0.1:${port}/reports/${uid}`,
        token: 'the-token',
      });
      try {
        const { code, report } = await start(podData(sh('exit 3')), { reportTo }).ended;
        expect(code).to.equal(3);
        expect(got.at(-1)).to.deep.equal({
          authorization: 'Bearer the-token',
          body: { version: 1, containers: report },
        });
      } finally {
        server.close();
      }
    });

    it('runs a command on the machine where the operator allows it', async () => {
      const { ended, file } = start(
        podData({
          image: 'host',
          command: ['sh', '-c', 'echo "$1 $X"', 'sh', 'a  b'],
          env: [{ name: 'X', value: 'y' }],
        }),
        { host: true },
      );
      expect((await ended).code).to.equal(0);
      expect(file('main.log')).to.equal('a  b y\n');
    });
  });
