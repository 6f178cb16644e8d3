import type { Requirements } from '../../../worker/worker.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';

/** What a pilot type means for the command line of the wrapper. */
interface PilotType {
  /** Undefined: the label of the worker. */
  readonly label?: string;
  readonly option: string;
  /** Name of the pilot's archive behind "pilot2-" or "pilot3-". */
  readonly archive?: string;
  readonly debug: string;
}

/** Source: Harvester's submitter_common. */
const pilotTypes: Readonly<Record<string, PilotType>> = {
  RC: { label: 'rc_test2', option: 'RC', archive: 'dev', debug: '-d' },
  ALRB: { label: 'rc_alrb', option: 'ALRB', debug: '' },
  PT: { label: 'ptest', option: 'PR', archive: 'dev2', debug: '-d' },
  PR: { option: 'PR', debug: '' },
};

const releaseCandidate = 'http://pandaserver.cern.ch:25085/cache/pilot/pilot3-rc.tar.gz';

type Options = Pick<
  HTCondorSubmitterConfig,
  | 'pilot_url'
  | 'pilot_version'
  | 'python_version'
  | 'rcPilotRandomWeightPermille'
  | 'unifiedQueue'
  | 'pilot_args'
>;

/** The placeholders that are options of the wrapper. `random`: from 0 up to 1. */
export function pilotOptions(
  { pilotType, prodSourceLabel, resourceType }: Requirements,
  options: Options,
  random: () => number,
) {
  const usual: PilotType = { option: 'PR', debug: '' };
  const type = Object.hasOwn(pilotTypes, pilotType) ? (pilotTypes[pilotType] ?? usual) : usual;
  const label = type.label ?? prodSourceLabel;
  return {
    prodSourceLabel: label,
    pilotType: type.option,
    pilotUrlOption: urlOption(type, pilotType, options, random),
    pilotVersion: options.pilot_version,
    pilotPythonOption: options.python_version.startsWith('3') ? '--pythonversion 3' : '',
    pilotDebugOption: type.debug,
    pilotArgs: options.pilot_args,
    pilotJobLabel: label === 'managed' || label === 'user' ? 'unified' : label,
    pilotJobType: 'unified',
    resourceType: options.unifiedQueue ? resourceType : '',
    pilotResourceTypeOption: options.unifiedQueue ? `--resource-type ${resourceType}` : '',
  };
}

function urlOption(type: PilotType, pilotType: string, options: Options, random: () => number): string {
  const { pilot_url, pilot_version, rcPilotRandomWeightPermille } = options;
  if (pilot_url !== undefined) return `--piloturl ${pilot_url}`;
  if (type.archive !== undefined) {
    const generation = pilot_version.startsWith('3') ? 'pilot3' : 'pilot2';
    return `--piloturl http://cern.ch/atlas-panda-pilot/${generation}-${type.archive}.tar.gz`;
  }
  const lucky = pilotType === 'PR' && random() * 1000 < rcPilotRandomWeightPermille;
  return lucky ? `--piloturl ${releaseCandidate}` : '';
}
