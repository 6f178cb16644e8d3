/** One line of the result. */
export interface Figure {
  readonly id: string;
  readonly what: string;
  readonly measured: number;
  readonly unit: string;
  /** The target; absent: for information, or for comparison between machines. */
  readonly target?: string;
  readonly met?: boolean;
}

/** As it stands in a table. */
function shown({ measured, unit }: Figure): string {
  const number =
    measured !== 0 && Math.abs(measured) < 0.01 ? measured.toExponential(1) : measured.toLocaleString('en');
  return unit === 'ratio' ? number : `${number} ${unit}`;
}

/** Two tables: what has a target, and what is told beside it. */
export function tablesOf(figures: readonly Figure[]): string[] {
  const judged = figures.filter((figure) => figure.target !== undefined);
  const others = figures.filter((figure) => figure.target === undefined);
  return [
    '| figure | measured | target | met |',
    '| --- | ---: | ---: | --- |',
    ...judged.map(
      (figure) =>
        `| ${figure.what} | ${shown(figure)} | ${figure.target ?? ''} | ${figure.met ? 'yes' : 'no'} |`,
    ),
    '',
    '| beside them | measured |',
    '| --- | ---: |',
    ...others.map((figure) => `| ${figure.what} | ${shown(figure)} |`),
  ];
}

/** A target with its unit. */
export interface Target {
  readonly unit: string;
  readonly target: number;
}

export function atLeast(id: string, what: string, measured: number, { unit, target }: Target): Figure {
  return { id, what, measured, unit, target: `>= ${target}`, met: measured >= target };
}

export function atMost(id: string, what: string, measured: number, { unit, target }: Target): Figure {
  return { id, what, measured, unit, target: `<= ${target}`, met: measured <= target };
}

export function info(id: string, what: string, measured: number, unit: string): Figure {
  return { id, what, measured, unit };
}
