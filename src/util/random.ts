/** Chance as it is handed to everything that needs it, from 0 up to 1, so that tests can decide it. */
export const systemRandom: () => number = Math.random;
