/** Pilot type of whatever has none of its own. */
export const usualPilotType = 'PR';

/** Pilot type for jobs of a label; all other labels have the usual one. Source: Harvester's JobSpec.get_pilot_type. */
export const pilotTypeOfLabel: Readonly<Record<string, string>> = {
  rc_test: 'RC',
  rc_test2: 'RC',
  rc_alrb: 'ALRB',
  ptest: 'PT',
};

/** Labels of PanDA whose pilots are of the usual type. Source: panda-server's JobUtils. */
export const usualLabels: readonly string[] = [
  ...['managed', 'user', 'panda', 'test', 'prod_test', 'install', 'ddm', 'software'],
];
