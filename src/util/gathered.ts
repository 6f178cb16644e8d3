/** Pieces up to this size are copied into blocks, bytes: each has its own cost in memory, which is a hundred bytes and more. */
const small = 4096;
const blockSize = 64 * 1024;

/** A text that comes in pieces, of which each may have one byte: what is kept takes little more than the text itself. */
export class Gathered {
  #pieces: Buffer[] = [];
  #block: Buffer | undefined;
  /** Where what is not among the pieces yet begins in the block, and where it ends. */
  #from = 0;
  #used = 0;
  #length = 0;

  /** Bytes so far. */
  get length(): number {
    return this.#length;
  }

  add(piece: Buffer): void {
    this.#length += piece.length;
    if (piece.length > small) {
      this.#endPiece();
      this.#pieces.push(piece);
      return;
    }
    // The first pieces are most often all.
    if (this.#block === undefined && this.#pieces.length < 16) {
      this.#pieces.push(piece);
      return;
    }
    if (this.#used + piece.length > blockSize) this.#endBlock();
    this.#block ??= Buffer.allocUnsafe(blockSize);
    piece.copy(this.#block, this.#used);
    this.#used += piece.length;
  }

  /** All of it, and begins anew. */
  take(): Buffer {
    this.#endBlock();
    const [first, ...others] = this.#pieces;
    const whole = first !== undefined && others.length === 0 ? first : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#length = 0;
    return whole;
  }

  #endPiece(): void {
    if (this.#used > this.#from && this.#block !== undefined)
      this.#pieces.push(this.#block.subarray(this.#from, this.#used));
    this.#from = this.#used;
  }

  #endBlock(): void {
    this.#endPiece();
    this.#block = undefined;
    [this.#from, this.#used] = [0, 0];
  }
}

/** Pieces of a text that are joined at once. */
const joined = 1024;

/** The same for a text: its pieces are joined once it is whole, and some before, since each may have one character. */
export class GatheredText {
  #pieces: string[] = [];
  #latest: string[] = [];
  #length = 0;

  /** Characters so far. */
  get length(): number {
    return this.#length;
  }

  add(piece: string): void {
    if (piece === '') return;
    this.#length += piece.length;
    if (this.#latest.push(piece) < joined) return;
    this.#pieces.push(this.#latest.join(''));
    this.#latest = [];
  }

  /** All of it, and begins anew. */
  take(): string {
    const whole = [...this.#pieces, ...this.#latest].join('');
    [this.#pieces, this.#latest, this.#length] = [[], [], 0];
    return whole;
  }
}
