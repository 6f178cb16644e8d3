import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureDirectory, hasCode, writeFileAtomically } from '../../util/files.ts';
import { check } from '../../util/schema.ts';
import Type from '../../util/type.ts';
import type { Row } from './report-sender.ts';
import { bareReport } from './reports.ts';

const Kept = Type.Array(
  Type.Object({
    sequence: Type.Integer(),
    report: Type.Object({
      workerID: Type.Integer(),
      status: Type.String(),
      computingSite: Type.Optional(Type.String()),
      submitTime: Type.Optional(Type.Number()),
      startTime: Type.Optional(Type.Number()),
      endTime: Type.Optional(Type.Number()),
      errorCode: Type.Optional(Type.Integer()),
    }),
  }),
);

/**
 * Final reports that the server refuses, without their texts, in one file that is replaced as a whole. The news of these workers count
 * as told, so that a restart would forget them otherwise.
 */
export class RefusedReports {
  readonly #directory: string;
  readonly #file: string;

  constructor(directory: string) {
    this.#directory = directory;
    this.#file = join(directory, 'refused.json');
  }

  /** @returns undefined where the file holds something else. @throws Error where it cannot be read */
  async load(): Promise<readonly Row[] | undefined> {
    let value: unknown;
    try {
      value = JSON.parse(await readFile(this.#file, 'utf8'));
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return [];
      if (error instanceof SyntaxError) return undefined;
      throw error;
    }
    const checked = check(Kept, value);
    if (!checked.ok) return undefined;
    return checked.value.map(({ sequence, report }) => {
      return { report: bareReport(report), sequence, isFinal: true };
    });
  }

  /** When this returns they survive a crash. */
  async keep(rows: readonly Row[]): Promise<void> {
    const kept = rows.map(({ sequence, report }) => {
      return { sequence, report: bareReport(report) };
    });
    await ensureDirectory(this.#directory);
    await writeFileAtomically(this.#file, JSON.stringify(kept), 0o600);
  }
}
