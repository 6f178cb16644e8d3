import type { PandaApi } from '../../clients/panda/api.ts';
import type { PandaOutcome } from '../../clients/panda/outcome.ts';
import type { SourceHost } from '../../plugins/contracts/index.ts';
import type { PandaCallName } from '../../plugins/contracts/panda-status.ts';
import type { BesideTask } from './beside.ts';
import { Dialogs } from './dialogs.ts';
import { lookAtProcess, ServiceMetrics } from './metrics.ts';
import type { LinkOptions } from './options.ts';

export interface MessageParts {
  readonly api: Pick<PandaApi, 'addDialogs' | 'updateServiceMetrics'>;
  readonly note: (call: PandaCallName, outcome: PandaOutcome<unknown>) => void;
  readonly settings: LinkOptions;
  /** Name of this machine. */
  readonly machine: string;
  readonly host: Pick<SourceHost, 'clock' | 'stateDir' | 'takeWarnings' | 'credentials'>;
}

/** Harvester's pace, ms. */
const paces = { dialogs: 60_000, metrics: 300_000 };

/** Messages to the operators of the server: warnings of this daemon, and how its process does. */
export function messages({ api, note, settings, machine, host }: MessageParts): readonly BesideTask[] {
  const { clock, stateDir, takeWarnings: take, credentials } = host;
  const { dialogsAtOnce: most, dialogLevel: level } = settings;
  const noteAs = (call: PandaCallName) => (outcome: PandaOutcome<unknown>) => {
    note(call, outcome);
  };
  const dialogs = new Dialogs({ api, clock, take, most, level, note: noteAs('dialogs') });
  const look = () => lookAtProcess(stateDir);
  const metricsNote = noteAs('metrics');
  const metrics = new ServiceMetrics({ api, clock, host: machine, look, credentials, note: metricsNote });
  return [
    { name: 'dialogs', interval: paces.dialogs, turn: (signal) => dialogs.turn(signal) },
    { name: 'metrics', interval: paces.metrics, turn: (signal) => metrics.turn(signal) },
  ];
}
