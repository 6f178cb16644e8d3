/** What `condor_q -analyze:summary` says of the jobs of one autocluster. */
export interface SummaryRow {
  /** Slots that meet the requirements of the job. */
  readonly meeting: number;
  /** Those among them whose own requirements the job does not meet. */
  readonly refusing: number;
  /** Slots that would run it now. */
  readonly available: number;
}

/**
 * Reads `condor_q -analyze:summary`, by job (`CLUSTER.PROC`). A job has no entry where its row is missing, cut or there twice: an owner
 * whose name holds the end of a line could write rows of other jobs.
 */
export function parseSummary(text: string): ReadonlyMap<string, SummaryRow> {
  const rows = new Map<string, SummaryRow>();
  const twice = new Set<string>();
  // What stands behind the last end of a line may be a part of a number.
  for (const line of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
    const found = /^(\d+\.\d+)\s+(?:\d+\/\d+\s+)?(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)(?:\s|$)/.exec(line);
    if (found === null) continue;
    const [, job = '', meeting, refusing, , , available] = found;
    if (rows.has(job)) twice.add(job);
    rows.set(job, {
      meeting: Number(meeting),
      refusing: Number(refusing),
      available: Number(available),
    });
  }
  for (const job of twice) rows.delete(job);
  return rows;
}

/** One step of an analysis: a part of a condition, and how many of the other side meet it. */
interface Step {
  readonly meeting: number;
  readonly text: string;
}

/** A condition of a job, or of a slot, that is met by none of the other side. */
export interface Analysis {
  /** The parts that nothing meets; several parts joined by `&&` where each is met, but nowhere all of them. */
  readonly failing: readonly string[];
  /** Values of the job and of the slots that the condition mentions: `RequestGPUs` → `2`; `TARGET.` before those of the other side. */
  readonly values: ReadonlyMap<string, string>;
  /** Slots that the job's condition rejects; undefined in an analysis of a slot. */
  readonly rejected: number | undefined;
  /** Slots that the job's condition takes, and that reject the job. */
  readonly refusing: number | undefined;
}

const stepLine = /^\[(\d+)\]\s+(\d+)\s+(\S.*)$/;

/**
 * Reads `condor_q -better-analyze` of one job, or each part of `-better-analyze:reverse`.
 * @returns undefined where the text has no end, or is something else
 */
export function parseAnalysis(text: string): Analysis | undefined {
  const [head = '', tail] = text.split(
    /^The Requirements expression for .* reduces to these conditions:\s*$/m,
  );
  const steps = new Map<number, Step>();
  for (const line of (tail ?? '').split('\n')) {
    const [, number, meeting, condition] = stepLine.exec(line) ?? [];
    if (condition === undefined) continue;
    steps.set(Number(number), { meeting: Number(meeting), text: condition.trim() });
  }
  const counted = (pattern: RegExp) => {
    const [, count] = pattern.exec(text) ?? [];
    return count === undefined ? undefined : Number(count);
  };
  const rejected = counted(/^[ \t]+(\d+) are rejected by your job's requirements\s*$/m);
  const refusing = counted(/^[ \t]+(\d+) reject your job because of their own requirements\s*$/m);
  // The counts come last: without them, steps may be missing.
  const isWhole = refusing !== undefined || /^[ \t]+\d+ match the requirements of this slot\./m.test(text);
  if (!isWhole) return undefined;
  return { failing: failingOf(steps), values: valuesIn(head), rejected, refusing };
}

/** The parts of `-better-analyze:reverse`, one for each slot. */
export function slotAnalyses(text: string): (Analysis | undefined)[] {
  return text
    .split(/^-- Slot: /m)
    .slice(1)
    .map(parseAnalysis);
}

/** Operands, and strings, in which there is none. */
const stringOrOperand = /"(?:[^"\\]|\\.)*"?|(?<![\w\])])\[(\d+)\]/gs;

/** Numbers of the steps to which a step refers: such a one comes before it. A user writes brackets, too, as text and behind the name of a list. */
function operandsOf(
  text: string,
  number: number,
): { readonly at: number; readonly end: number; readonly part: number }[] {
  return Array.from(text.matchAll(stringOrOperand), ({ index, 0: all, 1: part }) => ({
    at: index,
    end: index + all.length,
    // A string is none.
    part: part === undefined ? Infinity : Number(part),
  })).filter(({ part }) => part < number);
}

/** Characters of a condition that are shown at most. */
const longestShown = 10_000;

/** Steps that nothing meets, and that no other step explains better. */
function failingOf(steps: ReadonlyMap<number, Step>): string[] {
  const covered = new Set<number>();
  const failing: number[] = [];
  for (const [number, { meeting, text }] of steps) {
    const parts = operandsOf(text, number).map(({ part }) => part);
    if (parts.length === 0) continue;
    // An alternative counts as a whole, whether it is met or not.
    if (text.includes('||')) for (const part of parts) covered.add(part);
    // Each of `a && b` that nothing meets tells more than both.
    if (meeting === 0 && text.includes('&&') && parts.some((part) => steps.get(part)?.meeting === 0))
      covered.add(number);
  }
  for (const [number, { meeting }] of steps) if (meeting === 0 && !covered.has(number)) failing.push(number);
  const texts = textsOf(steps);
  return [...new Set(failing.flatMap((number) => texts.get(number) ?? []))];
}

/** The texts of steps with those that they refer to in their places; none of a step that is too long, or refers to one that is missing. */
function textsOf(steps: ReadonlyMap<number, Step>): ReadonlyMap<number, string> {
  const texts = new Map<number, string>();
  for (const [number, { text }] of [...steps].sort(([one], [other]) => one - other)) {
    const whole = filled(text, number, texts);
    if (whole !== undefined) texts.set(number, whole);
  }
  return texts;
}

function filled(text: string, number: number, texts: ReadonlyMap<number, string>): string | undefined {
  let whole = '';
  let from = 0;
  for (const { at, end, part } of operandsOf(text, number)) {
    const inner = texts.get(part);
    if (inner === undefined || whole.length > longestShown) return undefined;
    whole += text.slice(from, at) + (/ (\|\||&&) /.test(inner) ? `(${inner})` : inner);
    from = end;
  }
  whole += text.slice(from);
  return whole.length > longestShown ? undefined : whole;
}

/** Values that stand before the steps: those of the job, then those of each slot or of one. */
function valuesIn(head: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of head.split('\n')) {
    const [, name, value] = /^ {4}([A-Za-z_][\w.]*) = (\S.*)$/.exec(line) ?? [];
    // The unit in brackets is for people.
    if (name !== undefined && value !== undefined && !values.has(name))
      values.set(name, value.replace(/ \((kb|mb)\)$/, ''));
  }
  return values;
}
