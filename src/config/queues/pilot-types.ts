/** Pilot type of whatever has none of its own. */
export const usualPilotType = 'PR';

/** Pilot type for jobs of a label; all other labels have the usual one. Source: Harvester's JobSpec.get_pilot_type. */
export const pilotTypeOfLabel: Readonly<Record<string, string>> = {
  rc_test: 'RC',
  rc_test2: 'RC',
  rc_alrb: 'ALRB',
  ptest: 'PT',
};

export const pilotTypes: readonly string[] = [
  ...new Set([usualPilotType, ...Object.values(pilotTypeOfLabel)]),
];
