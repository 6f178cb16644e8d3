import type { SourceMemory } from '../../plugins/contracts/index.ts';
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

/** Under this name they are kept. */
const name = 'refused.json';

/**
 * Final reports that the server refuses, without their texts, in one text that is replaced as a whole. The news of these workers count
 * as told, so that a restart would forget them otherwise.
 */
export class RefusedReports {
  readonly #at: SourceMemory;

  constructor(at: SourceMemory) {
    this.#at = at;
  }

  /** @returns undefined where the text is something else. @throws Error where it cannot be read */
  async load(): Promise<readonly Row[] | undefined> {
    const text = await this.#at.read(name);
    if (text === undefined) return [];
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
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
    await this.#at.write(name, JSON.stringify(kept));
  }
}
