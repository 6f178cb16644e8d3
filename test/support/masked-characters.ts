/** The characters in which secrets of this process are looked for while `work` runs, about: it must have one. */
export async function charactersLookedAt(work: () => unknown): Promise<number> {
  const charCodeAt = Reflect.get(String.prototype, 'charCodeAt') as (...given: unknown[]) => number;
  let looks = 0;
  String.prototype.charCodeAt = function (this: string, at: number) {
    looks++;
    return Reflect.apply(charCodeAt, this, [at]);
  };
  try {
    await work();
  } finally {
    String.prototype.charCodeAt = charCodeAt;
  }
  // Four at each place of a text.
  return looks / 4;
}

/** The characters in which secrets are looked for by their forms while `work` runs, by those of URLs. */
export async function maskedCharacters(work: () => unknown): Promise<number> {
  const replace = Reflect.get(String.prototype, 'replace') as (...given: unknown[]) => string;
  let characters = 0;
  String.prototype.replace = function (this: string, ...given: unknown[]) {
    const [pattern] = given;
    if (pattern instanceof RegExp && pattern.source.includes(':\\/\\/[^')) characters += this.length;
    return Reflect.apply(replace, this, given);
  };
  try {
    await work();
  } finally {
    String.prototype.replace = replace;
  }
  return characters;
}
