import { accessSync, constants, type Stats, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf } from '../worker/errors.ts';
import { hasCode } from './files.ts';

/** File systems of the kernel, in which no process can create a file. Source: linux/magic.h. */
const kernelFileSystems: Readonly<Record<number, string>> = {
  0x9fa0: '/proc',
  0x62656572: '/sys',
  0x63677270: 'the control groups',
};

/**
 * Why there can be no directory to write to at `path`, found without making anything. Undefined where there can, and where
 * this user may not look or write: the daemon's user may be allowed to.
 */
export function whyNoDirectory(path: string): string | undefined {
  return attempt(() => {
    const found = look(path);
    if (found === undefined) return whyNothingBelow(dirname(path));
    if (!found.isDirectory()) return `${path} is not a directory`;
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return whyKernels(path);
  });
}

/** The same for a file that is to be written to; directories on the way to it would be made. */
export function whyNoFile(path: string): string | undefined {
  return attempt(() => {
    const found = look(path);
    if (found === undefined) return whyNothingBelow(dirname(path));
    if (found.isDirectory()) return `${path} is a directory`;
    accessSync(path, constants.W_OK);
    return undefined;
  });
}

function whyNothingBelow(directory: string): string | undefined {
  const found = look(directory);
  if (found === undefined) return whyNothingBelow(dirname(directory));
  if (!found.isDirectory()) return `${directory} is not a directory`;
  const kernels = whyKernels(directory);
  if (kernels === undefined) accessSync(directory, constants.W_OK | constants.X_OK);
  return kernels;
}

function whyKernels(directory: string): string | undefined {
  const name = kernelFileSystems[statfsSync(directory).type >>> 0];
  return name === undefined
    ? undefined
    : `nothing can be made in ${directory}, which is the kernel's (${name})`;
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    // Below a file there is nothing either: that it is one is found on the way up.
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

function attempt(find: () => string | undefined): string | undefined {
  try {
    return find();
  } catch (error) {
    return hasCode(error, 'EACCES', 'EPERM') ? undefined : messageOf(error);
  }
}
