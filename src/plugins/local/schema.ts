import type { Static } from 'typebox';
import Type from '../../util/type.ts';
import type { ConnectionHost } from '../contracts/backend.ts';

/** Options of the local backend. Those that say where must be equal for submitter, monitor and sweeper: put them into `common`. */
const where = {
  workDir: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'Directory with one directory per worker. Relative paths count from the queue file. Default: `local` in the state directory.',
    }),
  ),
};

export const LocalSubmitterConfig = Type.Object({
  ...where,
  templateFile: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'YAML template of the worker. Relative paths count from the queue file. Default: a built-in short pilot.',
    }),
  ),
  maxSlots: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      description:
        'Cores that workers of this directory may take together. Default: the cores of the machine.',
    }),
  ),
  maxMemory: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'MB that workers of this directory may take together. Default: the memory of the machine.',
    }),
  ),
  pidNamespace: Type.Union([Type.Literal('auto'), Type.Literal('required'), Type.Literal('none')], {
    default: 'auto',
    description:
      "Gives each worker a PID namespace of its own, in which it sees only its own processes: `auto` if the kernel of this machine lets the daemon's user make one; with `required` thresher submits nothing if the kernel does not; `none` never. Setuid programs, such as sudo, do not work in the namespace of an ordinary user.",
  }),
});
export type LocalSubmitterConfig = Static<typeof LocalSubmitterConfig>;

export const LocalMonitorConfig = Type.Object({
  ...where,
  pollInterval: Type.Number({
    default: 1,
    minimum: 0.05,
    description: 'Seconds between looks at living workers.',
  }),
  killGrace: Type.Number({
    default: 10,
    minimum: 0,
    description: 'Seconds between TERM and KILL for a worker over its wall time.',
  }),
});
export type LocalMonitorConfig = Static<typeof LocalMonitorConfig>;

export const LocalSweeperConfig = Type.Object({
  ...where,
  killGrace: Type.Number({ default: 10, minimum: 0, description: 'Seconds between TERM and KILL.' }),
});
export type LocalSweeperConfig = Static<typeof LocalSweeperConfig>;

/** The daemon as a work directory sees it. */
export type LocalDaemon = ConnectionHost<LocalSubmitterConfig, LocalMonitorConfig, LocalSweeperConfig>;

const text = Type.String();
const scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);

/** A worker template of the local backend. */
export const LocalTemplate = Type.Object(
  {
    command: Type.String({
      minLength: 1,
      description: 'Program: a path, or a name to look up in PATH.',
    }),
    args: Type.Array(Type.Union([text, Type.Number()]), { default: [], description: 'Its arguments.' }),
    env: Type.Record(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }), scalar, {
      default: {},
      additionalProperties: false,
      description: 'Environment in addition to that of every pilot.',
    }),
    cwd: Type.Optional(
      Type.String({ minLength: 1, description: "Working directory. Default: the worker's own directory." }),
    ),
    cpu: Type.Optional(
      Type.Number({ minimum: 0, description: 'Cores that count for `maxSlots`. Default: `nCore`.' }),
    ),
    memory: Type.Optional(
      Type.Integer({ minimum: 0, description: 'MB that count for `maxMemory`. Default: `minRamCount`.' }),
    ),
  },
  { additionalProperties: false },
);
export type LocalTemplate = Static<typeof LocalTemplate>;
