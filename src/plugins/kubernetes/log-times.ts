/** The node writes this before each line: a time in nanoseconds, in UTC or in the node's own zone. */
const stamp = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;
const longestStamp = 'yyyy-mm-ddThh:mm:ss.nnnnnnnnn+hh:mm'.length;

/**
 * Takes the times from the lines of a log that was asked for with `timestamps`, and leaves out what an earlier stream of the same
 * log has shown. The API server begins a stream at a whole second (`sinceTime`), so a stream that goes on repeats up to a second.
 */
export class LogTimes {
  /** The newest time seen; it sorts as text. */
  #newest = '';
  /** So many characters were shown of the lines of this time. */
  #shown = 0;
  /** Is left out of the line that is being read. */
  #skip = 0;
  /** The beginning of a line, as long as it may be a time; undefined within a line. */
  #start: string | undefined = '';
  /** Lines of the newest time, in this stream. */
  #repeated = 0;
  #isNewest = false;

  /** From then on the log is to be asked for, ms UTC; undefined where no line has come. */
  get since(): number | undefined {
    return this.#newest === '' ? undefined : Number(this.#newest.slice(0, secondsWidth)) * 1000;
  }

  /** Another stream begins. */
  begin(): void {
    this.#start = '';
    this.#repeated = 0;
    this.#isNewest = false;
    this.#skip = 0;
  }

  /** @returns what of this piece is new, without times */
  take(piece: string): string {
    let text = '';
    for (let at = 0; at < piece.length;) {
      if (this.#start !== undefined) {
        const char = piece.charAt(at++);
        const isOver = char === ' ' || char === '\n' || this.#start.length >= longestStamp;
        this.#start += isOver && char === ' ' ? '' : char;
        if (isOver) text += this.#endStart(this.#start, char);
        continue;
      }
      const end = piece.indexOf('\n', at);
      const next = end === -1 ? piece.length : end + 1;
      text += this.#show(piece.slice(at, next));
      at = next;
      if (end !== -1) this.#start = '';
    }
    return text;
  }

  /** Decides about a line by its beginning. */
  #endStart(start: string, last: string): string {
    const time = keyOf(start);
    this.#start = last === '\n' ? '' : undefined;
    if (time === undefined) {
      // The node's own words, such as that it cannot read the file.
      this.#isNewest = false;
      this.#skip = 0;
      return last === ' ' ? `${start} ` : start;
    }
    if (time > this.#newest) {
      this.#newest = time;
      this.#shown = 0;
      this.#repeated = 0;
    }
    this.#isNewest = time === this.#newest;
    this.#skip = this.#isNewest ? Math.max(0, this.#shown - this.#repeated) : Infinity;
    return '';
  }

  #show(words: string): string {
    const shown = words.slice(Math.min(this.#skip, words.length));
    this.#skip -= words.length - shown.length;
    if (this.#isNewest) {
      this.#repeated += words.length;
      this.#shown = Math.max(this.#shown, this.#repeated);
    }
    return shown;
  }
}

const secondsWidth = 12;

function keyOf(text: string): string | undefined {
  const [, seconds = '', fraction = '', zone = ''] = stamp.exec(text) ?? [];
  const at = Date.parse(`${seconds}${zone}`);
  return Number.isNaN(at)
    ? undefined
    : `${`${at / 1000}`.padStart(secondsWidth, '0')}.${fraction.padEnd(9, '0')}`;
}
