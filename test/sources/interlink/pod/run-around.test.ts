import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readLogTimes } from '../../../../src/sources/interlink/pod/report.ts';
import { PodRunner, shells } from '../../../support/pod-runner.ts';
import { podData } from '../../../support/pods.ts';
import { until } from '../../../support/until.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

/** As interLink's mesh network does it: a script that gets the payload as its arguments, with programs beside it that it leaves behind. */
const meshScript = (place: string) => `cat <<'EOFMESH' > $TMPDIR/mesh.sh
#!/bin/bash
set -e
set -m
sleep 86390 &
echo "mesh $PWD" >>${place}/order
export INSIDE_THE_MESH=yes
$@ &
JOBPID=$!
sleep 86391 &
fg %2 >/dev/null
EOFMESH
sleep 86392 &
`;

// busybox runs the same words as dash in run.test.ts.
for (const shell of shells.filter((one) => !one.startsWith('busybox')))
  describe(`around the containers of a Pod, by ${shell}`, () => {
    let directory: string;
    let runner: PodRunner;
    beforeEach(() => {
      directory = temporaryDirectory();
      runner = new PodRunner(shell, directory);
    });
    afterEach(async () => {
      await until('the job leaves no process', () => runner.left().length === 0);
    });
    const order = () => readFileSync(join(directory, 'order'), 'utf8');

    it('A23: a mesh network that pre-exec writes is around the containers, their probes and their end, and goes with them', async () => {
      const annotations = { 'slurm-job.vk.io/pre-exec': meshScript(directory) };
      const seen = `echo "$1 $INSIDE_THE_MESH" >>${directory}/order`;
      const say = (word: string) => ['sh', '-c', seen, 'sh', word];
      const spec = {
        initContainers: [{ ...runner.main('exit 0'), name: 'i' }],
        containers: [
          runner.main(`trap 'exit 0' TERM; echo main "$INSIDE_THE_MESH"; while :; do sleep 0.1; done`, {
            readinessProbe: { exec: { command: say('probe') }, periodSeconds: 100 },
            lifecycle: { preStop: { exec: { command: say('preStop') } } },
          }),
        ],
      };
      const { child, ended, report, file, scratch } = runner.start(podData({}, spec, { annotations }), {
        preExec: true,
      });
      await until('it is ready', () => report()?.containers['main']?.ready === true);
      child.kill('SIGTERM');
      const { code, report: last } = await ended;
      expect(last['main']).to.include({ exitCode: 143, reason: 'Terminated' });
      expect(code).to.equal(143);
      expect(last['i']).to.include({ exitCode: 0 });
      // Containers have no variable of the network, as of the machine.
      expect(file('main.log')).to.equal('main \n');
      expect(order()).to.equal(`mesh ${scratch}/.pod/before\nprobe \npreStop \n`);
      expect(existsSync(join(scratch, '.pod'))).to.equal(false);
    });

    it('a mesh network that fails ends the Pod, and no container runs outside of it', async () => {
      const annotations = { 'slurm-job.vk.io/pre-exec': `printf 'exit 3\\n' >$TMPDIR/mesh.sh` };
      const data = podData(runner.main(`touch ${directory}/order`), {}, { annotations });
      const { code, report } = await runner.start(data, { preExec: true }).ended;
      expect(code).to.equal(1);
      expect(report['main']).to.include({ state: 'terminated', exitCode: 1, reason: 'MeshFailed' });
      expect(existsSync(join(directory, 'order'))).to.equal(false);
    });

    it('defect 13: a tunnel runs while the containers do, ends with them, and leaves no file', async () => {
      const annotations = {
        'interlink.eu/wstunnel-client-commands': `echo program >tunnel; [[ -n $POD_IP ]] && echo "$POD_IP" >>${directory}/order; sleep 86393 &`,
        'interlink.eu/pod-ip': '10.7.0.9',
      };
      const { ended, scratch, file } = runner.start(
        podData(runner.main('echo "$POD_IP"'), {}, { annotations }),
        { preExec: true },
      );
      const { code, errors } = await ended;
      expect([code, errors]).to.deep.equal([0, '']);
      expect(order()).to.equal('10.7.0.9\n');
      expect(file('main.log')).to.equal('10.7.0.9\n');
      expect(existsSync(join(scratch, 'tunnel'))).to.equal(false);
    });

    it('a message is the end of the log, where the Pod asks for that, whatever is in it', async () => {
      const container = runner.main(`printf '%s' "$SAID"; exit 3`, {
        env: [{ name: 'SAID', value: 'first\n\ttab "quoted" \\ $HOME `id` ü\u0007\nlast' }],
        terminationMessagePolicy: 'FallbackToLogsOnError',
      });
      const { report } = await runner.start(podData(container)).ended;
      expect(report['main']).to.include({
        exitCode: 3,
        reason: 'Error',
        message: 'first\n tab "quoted" \\ $HOME `id` ü\nlast',
      });
    });

    it('commands of the operator are written for any shell, and give their environment to pulls and scripts alone', async () => {
      const commandPrefix = [
        'echo "$UNSET_BEFORE"',
        'work=/nowhere pod=/nowhere count=77; cd /',
        'export https_proxy=http://of.the.prefix OF_THE_PREFIX="two\nlines"',
        'false',
      ].join('\n');
      const container = runner.main('echo "${OF_THE_PREFIX:-none} ${https_proxy:-none}"', { image: 'x' });
      const { ended, file } = runner.start(podData(container), { commandPrefix });
      const { code, errors } = await ended;
      expect([code, errors]).to.deep.equal([0, '']);
      expect(file('main.log')).to.equal('none none\n');
      expect(readFileSync(join(directory, 'bin/pulls'), 'utf8')).to.contain('http://of.the.prefix');
    });

    it('commands of the operator that exit end the Pod, and say so', async () => {
      const { code, report } = await runner.start(podData(), { commandPrefix: 'exit 7' }).ended;
      expect(code).to.equal(1);
      expect(report['main']).to.include({
        exitCode: 1,
        reason: 'PrefixFailed',
        message: "the operator's commandPrefix ended with code 7",
      });
    });

    it('defect 10: a runner that ends before it begins leaves all files that its job brings back, and no report', async () => {
      const containers = ['main', 'side'].map((name) => ({ ...runner.main('true'), name }));
      const commandPrefix = "exec sh -c 'echo the machine is not ready >&2; exit 9'";
      const { ended, file } = runner.start(podData({}, { containers }), { commandPrefix });
      const { code, errors } = await ended;
      expect([code, errors]).to.deep.equal([9, 'the machine is not ready\n']);
      const left = ['main.log', 'main.log.times', 'side.log', 'side.log.times', 'pod-status.json'];
      expect(left.map(file)).to.deep.equal(left.map(() => ''));
    });

    it('a log that is too long keeps its end, and says so', async () => {
      const script = 'i=0; while [ $i -lt 300 ]; do echo "line $i"; i=$((i + 1)); done';
      const { ended, file } = runner.start(podData(runner.main(script)), { logBytes: 1000 });
      expect((await ended).code).to.equal(0);
      expect(file('main.log')).to.match(
        /^thresher: the log had more than 1000 bytes: its beginning was cut off here\n.*\n(line \d+\n)*line 299\n$/,
      );
      expect(file('main.log').length).to.be.lessThan(700);
      const last = readLogTimes(file('main.log.times')).at(-1);
      expect(last?.bytes).to.equal(file('main.log').length);
    });

    it('the secrets of a job whose files are on a shared disk stay on its machine', async () => {
      const scratch = join(directory, 'of-the-machine');
      mkdirSync(scratch);
      const look = `ls -a ${scratch} ${directory}/scratch`;
      const { ended, file } = runner.start(
        podData(runner.main(look)),
        {},
        {
          _CONDOR_MACHINE_AD: join(scratch, '.machine.ad'),
        },
      );
      expect((await ended).code).to.equal(0);
      const [machine = '', shared = ''] = file('main.log').split('\n\n');
      expect(machine).to.contain('.pod');
      expect(shared).to.contain('main.log');
      expect(shared).to.not.contain('.pod');
      expect(readdirSync(scratch)).to.deep.equal([]);
    });

    it('a directory that the machine does not share is an end in words, and no run elsewhere', async () => {
      const { code, errors } = await runner.start(
        podData(),
        {},
        {
          _CONDOR_SCRATCH_DIR: join(directory, 'not-mounted'),
        },
      ).ended;
      expect(code).to.equal(125);
      expect(errors).to.contain('cannot be written here: does the machine share it?');
    });

    it('A24: a job script may tell the end and the output of each container', async () => {
      const jobScript = `#!/bin/sh
echo of the script
echo of b >"$workingPath/run-b.out"
echo 7 >"$workingPath/run-b.status"
exit 7
`;
      // Images with a program of their own need no command.
      const containers = [
        { name: 'main', image: 'x' },
        { ...runner.main('exit 1'), name: 'b' },
      ];
      const { ended, file } = runner.start(podData({}, { containers }, { jobScript }), { jobScript: true });
      const { code, report } = await ended;
      expect(code).to.equal(7);
      expect(report['main']).to.include({ exitCode: 7, reason: 'Error' });
      expect(report['b']).to.include({ exitCode: 7, reason: 'Error' });
      expect([file('main.log'), file('b.log')]).to.deep.equal(['of the script\n', 'of b\n']);
    });

    it('a child that is gone before the look at it: its session ends, and none that came from outside of its tree of processes', () => {
      // In such a tree, what was begun outside of it has session 0.
      const script = `. templates/interlink/state.sh
. templates/interlink/around.sh
session_of() { stat_of "/proc/$1"; echo "$session"; }
sleep 86395 &
foreign=$!
setsid sh -c 'sleep 86396 & echo $! >'"$1/left" &
wait $!
begun $!
left=$(cat "$1/left")
echo "$(session_of $foreign) $(($(session_of $left) == $!))"
end_left '' "$il_begun"
end_left '' 0:gone
for one in $foreign $left; do
  is=$(cut -d ' ' -f 3 "/proc/$one/stat" 2>/dev/null) && [ "$is" != Z ] && echo lives || echo ended
done`;
      const own = `--user --map-root-user --pid --fork --mount-proc ${shell} -c`.split(' ');
      const { stdout, stderr } = spawnSync('unshare', [...own, script, 'sh', directory], {
        encoding: 'utf8',
      });
      expect(stdout, stderr).to.equal('0 1\nlives\nended\n');
    });

    it('what a program on the machine left behind ends with its container', async () => {
      const container = { image: 'host', command: ['sh', '-c', 'sleep 86394 & echo "$PWD"'] };
      const { ended, file, scratch } = runner.start(podData(container), { host: true });
      expect((await ended).code).to.equal(0);
      expect(file('main.log')).to.equal(`${scratch}/.pod/work/0\n`);
    });
  });
