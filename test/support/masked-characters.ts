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
