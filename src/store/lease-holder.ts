/** Who has a factory, as the database says. */
export interface LeaseHolder {
  /** Host and process: "ce01 pid 4711". */
  readonly holder: string;
  /** Since when, ISO 8601 UTC. */
  readonly since: string;
}
