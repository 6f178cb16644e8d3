/** One line of the result. */
export interface Figure {
  readonly id: string;
  readonly what: string;
  readonly measured: number;
  readonly unit: string;
  /** What is asked for; absent: for information, or for comparison between machines. */
  readonly target?: string;
  readonly met?: boolean;
}

/** As it stands in a table. */
export function shown({ measured, unit }: Figure): string {
  const number =
    measured !== 0 && Math.abs(measured) < 0.01 ? measured.toExponential(1) : measured.toLocaleString('en');
  return unit === 'ratio' ? number : `${number} ${unit}`;
}
