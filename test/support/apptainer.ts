import { chmodSync, cpSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unpackApptainer } from '../env/htcondor/programs.ts';
import { ownedPrefix, removeDirectory } from './temporary.ts';

/** A real apptainer, and an image that it can run without a network. */
export interface Apptainer extends Disposable {
  /** Directory of the program, for PATH. */
  readonly bin: string;
  /** A directory with the files of a machine: apptainer runs it as it runs an image of a registry. */
  readonly image: string;
}

const programs = ['cat', 'echo', 'env', 'false', 'id', 'ls', 'printf', 'pwd', 'sh', 'sleep', 'stat', 'true'];

/** @returns with an image of busybox, where jobs of any user can read it */
export async function apptainer(): Promise<Apptainer> {
  const environment = process.env['THRESHER_TEST_ENV'] ?? join(process.env['HOME'] ?? '/', '.cache/thresher');
  const directory = await unpackApptainer(environment);
  const image = mkdtempSync(ownedPrefix());
  chmodSync(image, 0o755);
  for (const name of ['bin', 'dev', 'etc', 'proc', 'sys', 'tmp']) mkdirSync(join(image, name));
  for (const name of ['group', 'hosts', 'localtime', 'passwd', 'resolv.conf'])
    writeFileSync(join(image, 'etc', name), '');
  cpSync(join(directory, 'usr/bin/busybox'), join(image, 'bin/busybox'));
  // Examples of htc-operator name it.
  writeFileSync(join(image, 'bin/bash'), '#!/bin/sh\nexec /bin/sh "$@"\n', { mode: 0o755 });
  for (const name of programs) symlinkSync('busybox', join(image, 'bin', name));
  return {
    bin: join(directory, 'usr/bin'),
    image,
    [Symbol.dispose]: () => {
      removeDirectory(image);
    },
  };
}
