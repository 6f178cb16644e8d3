import { type Clock, systemClock } from '../../src/util/clock.ts';

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

/** The forms of secrets with which texts, or those of a new secret, are compared while `work` runs, about. */
export async function formsComparedBy(work: () => unknown): Promise<number> {
  let compared = 0;
  const counted = (of: object, name: string, count: (one: unknown) => number) => {
    const call = Reflect.get(of, name) as (...given: unknown[]) => unknown;
    const counting = function (this: unknown, ...given: unknown[]) {
      compared += count(this);
      return Reflect.apply(call, this, given);
    };
    Reflect.set(of, name, counting);
    return () => Reflect.set(of, name, call);
  };
  const restores = [
    // Where a form is no longer that of the text, the end of a line may be.
    counted(RegExp.prototype, 'exec', (one) => (one instanceof RegExp && one.sticky ? 1 : 0)),
    counted(String.prototype, 'slice', () => 1),
    counted(Array.prototype, 'filter', (one) => (Array.isArray(one) ? one.length : 0)),
  ];
  try {
    await work();
  } finally {
    for (const restore of restores) restore();
  }
  return compared;
}

/** The characters in which secrets are looked for by their forms while `work` runs, by those of URLs. */
export async function maskedCharacters(work: () => unknown): Promise<number> {
  let characters = 0;
  await watchingMasks((length) => {
    characters += length;
  }, work);
  return characters;
}

/** The most of these in one turn. @param work gets a clock that goes on by 1 ms with each 100 of them */
export async function mostMaskedInATurn(work: (clock: Clock) => unknown): Promise<number> {
  let [all, inTurn, most] = [0, 0, 0];
  let isOver = false;
  const turn = () => {
    inTurn = 0;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const clock = { ...systemClock, monotonic: () => all / 100 };
  const masked = (length: number) => {
    all += length;
    inTurn += length;
    most = Math.max(most, inTurn);
  };
  try {
    await watchingMasks(masked, () => work(clock));
  } finally {
    isOver = true;
  }
  return most;
}

/** The most characters of JSON that are read and written in one turn of `work`. */
export async function mostJsonInATurn(work: () => unknown): Promise<number> {
  let [inTurn, most] = [0, 0];
  let isOver = false;
  const turn = () => {
    inTurn = 0;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const { parse, stringify } = JSON;
  const counted = <Value>(text: string, value: Value) => {
    inTurn += text.length;
    most = Math.max(most, inTurn);
    return value;
  };
  JSON.parse = (text, reviver) => counted(text, parse(text, reviver) as unknown);
  JSON.stringify = (value: unknown) => {
    const text = stringify(value);
    return counted(text, text);
  };
  try {
    await work();
  } finally {
    isOver = true;
    Object.assign(JSON, { parse, stringify });
  }
  return most;
}

async function watchingMasks(masked: (length: number) => void, work: () => unknown): Promise<void> {
  const replace = Reflect.get(String.prototype, 'replace') as (...given: unknown[]) => string;
  String.prototype.replace = function (this: string, ...given: unknown[]) {
    const [pattern] = given;
    if (pattern instanceof RegExp && pattern.source.includes(':\\/\\/[^')) masked(this.length);
    return Reflect.apply(replace, this, given);
  };
  try {
    await work();
  } finally {
    String.prototype.replace = replace;
  }
}
