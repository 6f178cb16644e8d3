/** What is wrong, said for who called: shown without a stack. */
export class Failure extends Error {}
