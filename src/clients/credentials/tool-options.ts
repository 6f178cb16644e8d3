import Type from '../../util/type.ts';

/** Options of every credential manager that calls a program: which, and for how long (s). */
export const toolOptions = (program: string, seconds: number) => ({
  renewCommand: Type.String({
    default: program,
    pattern: '\\S',
    description: 'Program, with arguments between spaces; no shell reads it.',
  }),
  timeLimit: Type.Number({
    default: seconds,
    exclusiveMinimum: 0,
    maximum: 3600,
    description: 'Seconds after which the manager kills the program.',
  }),
});
