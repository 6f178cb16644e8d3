/** A number, or several told apart by labels, that a source shows in the metrics of the daemon. */
export interface SourceGauge {
  /** In Prometheus' form, with the unit at its end: `thresher_htcondor_idle_jobs`. */
  readonly name: string;
  readonly help: string;
  /** A label whose values have no bound would fill Prometheus: a source bounds them itself. */
  readonly values: readonly {
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
}
