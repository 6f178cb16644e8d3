import type { Resources } from './model.ts';

/** What a job asks for, and what a startd gives it. */
export interface RequestSizes {
  /** Rounded up as a startd rounds it. */
  readonly request: Resources;
  /** As the job says it; what a startd gives where it lacks the rounded amounts. */
  readonly exact: Resources;
}

/** A resource that each slot has. */
interface Rounding {
  readonly resource: string;
  /** HTCondor rounds up to multiples of this, and to one at least, also a request for nothing or less. */
  readonly step: number;
  /** Amount for a job that asks for less, or does not say. */
  readonly least: number;
  /** For the table in docs/. */
  readonly about: string;
}

/**
 * How a startd rounds requests. Each row is the default of `MODIFY_REQUEST_EXPR_REQUEST<NAME>`, `quantize(Request<NAME>, {step})`.
 * `MUST_MODIFY_REQUEST_EXPRS` is false by default: a startd that the job no longer matches when rounded takes it unrounded.
 * Source: HTCondor 23.9, `condor_config_val -dump MODIFY_REQUEST`; `initialize_resource` of condor_startd.V6/Resource.cpp; slots of a real
 * startd, whose second job of 900 MiB got 900 of 976, and which left jobs without cores waiting once its cores were taken.
 */
const roundings: readonly Rounding[] = [
  {
    resource: 'cpus',
    step: 1,
    least: 1,
    about:
      'Cores. A job without `RequestCpus`, or with 0, gets 1, and a slot without a core left starts neither.',
  },
  {
    resource: 'memory',
    step: 128,
    least: 0,
    about: 'MiB. A job without `RequestMemory` fits no partitionable slot.',
  },
  {
    resource: 'disk',
    step: 1024,
    least: 0,
    about: 'KiB. A job without `RequestDisk` fits no partitionable slot.',
  },
];

const byResource = new Map(roundings.map((rounding) => [rounding.resource, rounding]));

/**
 * Sizes of a job, by what it asks for: `cpus` is the value of `RequestCpus`. An amount that is no number, or not evaluated, counts as
 * missing; a negative one as 0. Resources other than those above are not rounded.
 */
export function requestOf(asked: ReadonlyMap<string, number | undefined>): RequestSizes {
  const request = new Map<string, number>();
  const exact = new Map<string, number>();
  for (const { resource, step, least } of roundings) {
    const amount = Math.max(least, amountOf(asked.get(resource)) ?? 0);
    request.set(resource, Math.max(1, Math.ceil(amount / step)) * step);
    exact.set(resource, amount);
  }
  for (const [resource, value] of asked) {
    const amount = amountOf(value) ?? 0;
    if (byResource.has(resource) || amount === 0) continue;
    request.set(resource, amount);
    exact.set(resource, amount);
  }
  return { request, exact };
}

/** Infinity stays: no machine has so much. */
function amountOf(value: number | undefined): number | undefined {
  return value === undefined || Number.isNaN(value) ? undefined : Math.max(0, value);
}

const limitName = /^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/;

/**
 * Concurrency limits of a job, as its `ConcurrencyLimits` writes them (`license, large.render:2`), and how much of each it takes. The
 * negotiator skips a name of another form, and takes 1 where the amount is not above 0. `large.render` is a limit of its own beside `large`.
 */
export function concurrencyOf(text: string): ReadonlyMap<string, number> {
  const limits = new Map<string, number>();
  for (const part of text.split(/[\s,]+/)) {
    const [name = '', amount = ''] = part.toLowerCase().split(':');
    if (!limitName.test(name)) continue;
    const weight = Number.parseFloat(amount);
    limits.set(name, (limits.get(name) ?? 0) + (weight > 0 ? weight : 1));
  }
  return limits;
}
