import type { Requirements } from '../../worker/worker.ts';

/** Meaning of a pilot type for the command line of the wrapper. */
interface PilotType {
  /** Undefined: the label of the worker. */
  readonly label?: string;
  readonly option: string;
  /** Name of the pilot's archive behind "pilot2-" or "pilot3-". */
  readonly archive?: string;
  readonly debug: string;
}

const usual: PilotType = { option: 'PR', debug: '' };

/** All other types are as PR. Source: Harvester's submitter_common. */
const pilotTypes: Readonly<Record<string, PilotType>> = {
  RC: { label: 'rc_test2', option: 'RC', archive: 'dev', debug: '-d' },
  ALRB: { label: 'rc_alrb', option: 'ALRB', debug: '' },
  PT: { label: 'ptest', option: 'PR', archive: 'dev2', debug: '-d' },
  PR: usual,
};

/** The names that `--pilot-type` takes. */
export const knownPilotTypes: readonly string[] = Object.keys(pilotTypes);

const releaseCandidate = 'http://pandaserver.cern.ch:25085/cache/pilot/pilot3-rc.tar.gz';

/** Options of a queue that say which pilot the wrapper starts. */
export interface PilotSettings {
  readonly pilot_url?: string | undefined;
  readonly pilot_version: string;
  readonly python_version: string;
  /** Number of 1000 pilots of type PR that run the release candidate. */
  readonly rcPilotRandomWeightPermille?: number;
}

/** Facts about the pilot that every backend tells the wrapper. */
export interface PilotOptions {
  /** The label of the jobs that the pilot runs. */
  readonly label: string;
  /** The same as the wrapper is told it. */
  readonly jobLabel: string;
  readonly jobType: 'unified';
  readonly pilotType: string;
  readonly urlOption: string;
  readonly version: string;
  readonly pythonOption: string;
  readonly debugOption: string;
}

/** The options of the wrapper for one worker, the same on every backend. `random`: from 0 up to 1. */
export function pilotOptions(
  requirements: Pick<Requirements, 'pilotType' | 'prodSourceLabel'>,
  settings: PilotSettings,
  random: () => number,
): PilotOptions {
  const type = pilotTypeOf(requirements);
  const label = labelOfPilot(requirements);
  return {
    label,
    // Harvester's unified dispatch: managed and user pilots are one kind.
    jobLabel: label === 'managed' || label === 'user' ? 'unified' : label,
    jobType: 'unified',
    pilotType: type.option,
    urlOption: urlOption(type, settings, random),
    version: settings.pilot_version,
    pythonOption: settings.python_version.startsWith('3') ? '--pythonversion 3' : '',
    debugOption: type.debug,
  };
}

/** The label of the jobs a pilot of this type runs. */
export function labelOfPilot(requirements: Pick<Requirements, 'pilotType' | 'prodSourceLabel'>): string {
  return pilotTypeOf(requirements).label ?? requirements.prodSourceLabel;
}

function pilotTypeOf({ pilotType }: Pick<Requirements, 'pilotType'>): PilotType {
  return Object.hasOwn(pilotTypes, pilotType) ? (pilotTypes[pilotType] ?? usual) : usual;
}

function urlOption(type: PilotType, settings: PilotSettings, random: () => number): string {
  const { pilot_url, pilot_version, rcPilotRandomWeightPermille = 0 } = settings;
  if (pilot_url !== undefined) return `--piloturl ${pilot_url}`;
  if (type.archive !== undefined) {
    // Harvester takes the pilot's second version for "current", which it was once.
    const generation = pilot_version.startsWith('2') ? 'pilot2' : 'pilot3';
    return `--piloturl http://cern.ch/atlas-panda-pilot/${generation}-${type.archive}.tar.gz`;
  }
  const lucky = type === usual && random() * 1000 < rcPilotRandomWeightPermille;
  return lucky ? `--piloturl ${releaseCandidate}` : '';
}
