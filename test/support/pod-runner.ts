import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Container, RetrievedPodData } from '../../src/clients/interlink/wire.ts';
import type { PlanContext } from '../../src/sources/interlink/pod/plan.ts';
import { type PodReport, readReport } from '../../src/sources/interlink/pod/report.ts';
import { planned } from './pods.ts';

/** An image's own program would be run by apptainer: the stand-in runs the words behind the image, and writes down all. */
const standIn = `#!/bin/bash
where=\${0%/*}
case $1 in pull)
  echo "$APPTAINER_DOCKER_USERNAME:$APPTAINER_DOCKER_PASSWORD \${*: -1} $https_proxy" >>"$where/pulls"
  : >"\${*: -2:1}"
  echo 'INFO: pulling'
  [ ! -e "$where/pull-code" ] || { echo 'FATAL: "no" such \\image' >&2; exit "$(cat "$where/pull-code")"; }
  exit 0 ;;
sif)
  # As the real one says it.
  [ "$2" != list ] || printf 'ID   |GROUP   |LINK    |SIF POSITION (start-end)  |TYPE\n1    |1       |NONE    |32176-32221               |JSON.Generic\n2    |1       |NONE    |32221-32326               |FS (Squashfs/*System/amd64)\n'
  [ "$2" != dump ] || cat "$where/oci-config.json" 2>/dev/null
  exit 0 ;;
esac
# In one write: containers start at the same time.
call=$(for one in "$@"; do printf '[%s]' "$one"; done)
echo "$call" >>"$where/calls"
while [ "\${1%.sif}" = "$1" ]; do shift; done
shift
# The variables of the image; a test looks for those that would change this program where they came.
for name in \${!APPTAINERENV_@}; do
  case $name in *_PATH | *_IFS | *_OPTIND) continue ;; esac
  # As the shell in the real one reads it.
  value=\${!name}
  set -- "\${name#APPTAINERENV_}=\${value//$'\\r\\n'/$'\\n'}" "$@"
done
exec env "$@"
`;

/** The shells that a machine may have as its sh. */
export const shells = ['dash', 'busybox sh', 'bash --posix'];

/** Runs Pods on this machine, each with the runner by one shell, in a directory. */
export class PodRunner {
  readonly directory: string;
  readonly #shell: string;

  constructor(shell: string, directory: string) {
    this.#shell = shell;
    this.directory = directory;
  }

  start(
    data: RetrievedPodData,
    context: Partial<PlanContext> = {},
    machine: Readonly<Record<string, string>> = {},
  ) {
    const { directory } = this;
    const { payload } = planned(data, { imagePaths: [directory], ...context });
    const given = join(directory, 'payload');
    const scratch = join(directory, 'scratch');
    const bin = join(directory, 'bin');
    for (const one of [given, scratch, bin]) mkdirSync(one, { recursive: true });
    writeFileSync(join(bin, 'apptainer'), standIn);
    chmodSync(join(bin, 'apptainer'), 0o755);
    writeFileSync(join(directory, 'image.sif'), '');
    for (const { name, mode, content } of payload.files ?? []) {
      mkdirSync(dirname(join(given, name)), { recursive: true });
      writeFileSync(join(given, name), Buffer.from(content, 'base64'), { mode });
    }
    const [program = 'sh', ...words] = this.#shell.split(' ');
    const child = spawn(program, [...words, 'run.sh'], {
      cwd: given,
      env: {
        PATH: `${bin}:${process.env['PATH'] ?? ''}`,
        HOME: '/home-of-the-machine',
        https_proxy: 'http://proxy.example.org',
        OF_THE_MACHINE: 'yes\npayload=a line of a value',
        THRESHER_PAYLOAD_DIR: given,
        _CONDOR_SCRATCH_DIR: scratch,
        ...payload.env,
        ...machine,
      },
    });
    const file = (name: string) => readFileSync(join(scratch, name), 'utf8');
    const report = (): PodReport | undefined => {
      // An empty one tells nothing yet.
      if (!existsSync(join(scratch, 'pod-status.json')) || file('pod-status.json') === '') return undefined;
      const read = readReport(file('pod-status.json'));
      if (typeof read === 'string') throw new Error(`${read}: ${file('pod-status.json')}`);
      return read;
    };
    const ended = Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]).then(
      ([[code], output, errors]) => ({
        code: code as number | null,
        output,
        errors,
        report: report()?.containers ?? {},
      }),
    );
    return { child, ended, scratch, file, report, given };
  }

  /** A container that runs a script of the shell. */
  main(script: string, rest: Partial<Container> = {}): Container {
    const image = join(this.directory, 'image.sif');
    return { name: 'main', image, command: ['sh', '-c', script], ...rest };
  }

  /** Calls of the stand-in for apptainer. */
  calls(): readonly string[] {
    return readFileSync(join(this.directory, 'bin/calls'), 'utf8').trimEnd().split('\n');
  }

  /** Processes that work in the directory. */
  left(): readonly string[] {
    return readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`).startsWith(this.directory);
      } catch {
        return false;
      }
    });
  }
}
