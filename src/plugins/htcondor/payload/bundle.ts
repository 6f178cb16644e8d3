import type { Payload, PayloadFile } from '../../../worker/payload.ts';
import { modeOf } from '../../../worker/payload-check.ts';
import type { WorkerToStart } from '../../../worker/worker.ts';

/** Name of the bundle in the directory that a job starts in. */
export const bundleName = 'thresher-payload.sh';
/** Name of the file there that a worker leaves for its source. */
export const outputName = 'thresher-output';
/** Directory of the payload's files there. HTCondor brings no directory back by itself, so no secret of it returns with the output. */
const filesName = 'thresher-payload';

/** Letters of base64 in one line of the script. */
const lineLength = 1000;
/** Ends the content of a file: base64 has no such letter. */
const endOfFile = 'END-OF-FILE';

/** A worker whose payload reaches it in a bundle. */
export type BundledWorker = WorkerToStart & { readonly payload: Payload };

/** Whether the payload of a worker needs a bundle: values alone are in the submit description. */
export function hasBundle(worker: WorkerToStart): worker is BundledWorker {
  const { payload } = worker;
  if (payload === undefined) return false;
  const { files = [], argv = [], env = {}, output } = payload;
  return files.length > 0 || argv.length > 0 || Object.keys(env).length > 0 || output === true;
}

/** Whether the payload says itself what runs, in the place of the template's program. */
export function bringsProgram(payload: Payload | undefined): boolean {
  return (payload?.argv ?? []).length > 0;
}

/**
 * A script for `/bin/sh` on the machine of the job. It removes itself, unpacks the files, and becomes the program: that of the
 * payload, or the one that its arguments name: `transferred PROGRAM ARGUMENT...` for a program that came as an input file,
 * `there PROGRAM ARGUMENT...` for one that is on the machine. It needs `base64`, `chmod`, `env`, `mkdir` and `rm` there: coreutils
 * or busybox.
 *
 * - Single quotes keep every byte as it is. Contents are base64, since they may have any byte.
 * - `env` sets the variables and not the shell, which has read-only ones, and drops names that it could not have given itself.
 * - The shell of each `exec` is replaced: signals of HTCondor reach the program.
 */
export function bundleScript(payload: Payload): string {
  const { files = [], argv = [], env = {} } = payload;
  const output = payload.output === true;
  const own = bringsProgram(payload);
  const hasDirectory = own || files.length > 0;
  const variables = Object.entries(env).map(([name, value]) => quoted(`${name}=${value}`));
  return [
    ...head,
    ...(output ? emptyOutput : []),
    'rm -f -- "$0" || thresher_fail "the bundle cannot be removed"',
    ...(hasDirectory ? [...directory, ...files.flatMap(unpacked), 'umask "$thresher_umask"'] : []),
    // The program of the template starts where it would start without a payload.
    ...(hasDirectory && !own ? ['cd .. || thresher_fail "no way back"'] : []),
    ...(own ? [`set -- ${argv.map(quoted).join(' ')}`] : templatesProgram),
    // "a=b" is a variable to `env`, and a program to `exec`.
    'case $1 in *=*) set -- sh -c \'exec "$@"\' sh "$@" ;; esac',
    [
      'exec env',
      ...(hasDirectory ? ['"THRESHER_PAYLOAD_DIR=$thresher_dir"'] : []),
      ...(output ? ['"THRESHER_OUTPUT=$thresher_output"'] : []),
      ...variables,
      '"$@"',
    ].join(' '),
    '',
  ].join('\n');
}

const head = [
  '#!/bin/sh',
  "# A worker's payload, as thresher wrote it.",
  'thresher_fail() {',
  '  echo "thresher: the payload cannot be unpacked: $1" >&2',
  '  exit 126',
  '}',
];

/** HTCondor holds a job that lacks a file which it is to bring back: a program that is killed leaves an empty one. */
const emptyOutput = [
  `thresher_output=$(pwd)/${outputName}`,
  ': >"$thresher_output" || thresher_fail "no room for its output"',
];

const directory = [
  'thresher_umask=$(umask)',
  'umask 077',
  // HTCondor may start a job again in a directory that it kept.
  `rm -rf ${filesName} && mkdir ${filesName} && cd ${filesName} || thresher_fail "no directory for its files"`,
  'thresher_dir=$(pwd)',
];

/** A name that begins with "-" is no option behind "./". */
function unpacked(file: PayloadFile): string[] {
  const { name, content } = file;
  const path = quoted(`./${name}`);
  const parents = name.includes('/')
    ? [
        `mkdir -p ${quoted(`./${name.slice(0, name.lastIndexOf('/'))}`)} || thresher_fail "no directory for its files"`,
      ]
    : [];
  // Whatever the text was, only letters of base64 reach the script.
  const base64 = Buffer.from(content, 'base64').toString('base64');
  const lines = base64.match(new RegExp(`.{1,${lineLength}}`, 'g')) ?? [];
  const failed = 'thresher_fail "base64 failed: is it there, and is there room on the disk?"';
  const bits = modeOf(file).toString(8).padStart(4, '0');
  return [
    ...parents,
    `base64 -d >${path} <<'${endOfFile}' || ${failed}`,
    ...lines,
    endOfFile,
    `chmod ${bits} ${path} || thresher_fail "no mode for a file"`,
  ];
}

/** A transfer may lose that the program is executable. */
const templatesProgram = [
  'thresher_how=$1',
  'thresher_program=$2',
  'shift 2',
  'if [ "$thresher_how" = transferred ]; then',
  '  thresher_program=./${thresher_program##*/}',
  '  chmod u+x "$thresher_program" || thresher_fail "the program of the template did not come with it"',
  'fi',
  // HTCondor finds such a program in the directory that the job starts in.
  'case $thresher_program in */*) ;; *) thresher_program=./$thresher_program ;; esac',
  'set -- "$thresher_program" "$@"',
];

/** One word of a shell, whatever is in it but NUL. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
