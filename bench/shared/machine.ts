import { statfsSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import Database from 'better-sqlite3';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
  readonly sqlite: string;
  /** Where the databases lie: on a memory file system a commit costs nothing. */
  readonly fileSystem: string;
}

/** Source: statfs(2), linux/magic.h. */
const fileSystems: Readonly<Record<number, string>> = {
  0xef53: 'ext4',
  0x58465342: 'XFS',
  0x9123683e: 'Btrfs',
  0x01021994: 'tmpfs (in memory)',
  0x794c7630: 'overlayfs',
};

export function machine(): Machine {
  const db = new Database(':memory:');
  const sqlite = String(db.prepare('SELECT sqlite_version()').pluck().get());
  db.close();
  const type = statfsSync(tmpdir()).type >>> 0;
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${process.arch}`,
    node: process.version,
    sqlite,
    fileSystem: fileSystems[type] ?? `type 0x${type.toString(16)}`,
  };
}
