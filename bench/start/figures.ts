import { atMost, type Figure, info } from '../shared/figure.ts';
import { median, round } from '../shared/statistics.ts';
import { rows } from './site.ts';
import type { Measured } from './measured.ts';

/** Commands that read nothing of a site; all others read its settings and its database. */
export const bareCommands: readonly string[] = ['version', '--help', 'completion bash'];

const targets = {
  bare: { unit: 's', target: 0.12 },
  reading: { unit: 's', target: 0.3 },
  firstPilot: { unit: 's', target: 1 },
} as const;

const middle = (values: readonly number[]): number => round(median(values), 3);

export function figuresOf({ published, checkout, beside, ...daemon }: Measured): Figure[] {
  const { firstPilot, firstPilotProcessor } = daemon;
  const commands = Object.entries(published).map(([command, times]) => {
    const isBare = bareCommands.includes(command);
    const over = isBare ? '' : `, with ${rows.toLocaleString('en')} workers in the database`;
    const target = isBare ? targets.bare : targets.reading;
    return atMost(command, `processor time of \`thresher ${command}\`${over}`, middle(times), target);
  });
  return [
    ...commands,
    atMost(
      'first-pilot',
      "the daemon from exec to the first process of its first worker's pilot, local backend",
      middle(firstPilot),
      targets.firstPilot,
    ),
    info(
      'first-pilot-processor',
      'processor time of the daemon until then',
      middle(firstPilotProcessor),
      's',
    ),
    ...Object.entries(beside).map(([command, times]) =>
      info(command, `processor time of \`${command}\` beside it`, middle(times), 's'),
    ),
    ...Object.entries(checkout).map(([command, times]) =>
      info(
        `checkout ${command}`,
        `\`thresher ${command}\` of a checkout, which runs its sources`,
        middle(times),
        's',
      ),
    ),
  ];
}
