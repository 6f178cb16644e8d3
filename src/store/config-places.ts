/** Workers of one configuration at one place. */
export interface ConfigPlace {
  readonly queue: string;
  readonly configId: number;
  readonly placement: string;
}
