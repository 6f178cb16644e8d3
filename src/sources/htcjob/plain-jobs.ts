import type { JobMaker } from './job-maker.ts';

/** Jobs that run the script with its command on the machine itself, without a container. */
export const plainJobs: JobMaker = {
  problems: () => [],
  payload: ({ resource: { spec }, number }) => {
    const { command, source } = spec.script;
    const words = typeof command === 'string' ? command.split(/\s+/).filter((word) => word !== '') : command;
    const content = Buffer.from(source).toString('base64');
    return {
      files: [{ name: 'script', mode: 0o755, content }],
      argv: [...words, './script', String(number)],
      env: {
        ...Object.fromEntries((spec.env ?? []).map(({ name, value }) => [name, value])),
        JOB_NAME: spec.name,
      },
    };
  },
};
