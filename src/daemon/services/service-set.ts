import type { Log } from '../../plugins/contracts/index.ts';
import type { Clock } from '../../util/clock.ts';
import { within } from '../../util/within.ts';
import { toReason } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import type { RunConfiguration } from '../configuration.ts';
import type { Service, ServiceHealth, ServicePart, ServiceState } from './service.ts';

export interface ServiceSetParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Hears of each change of a state. */
  readonly changed: (services: readonly ServiceHealth[]) => void;
}

/** How long a service may take to stop beyond the time that all of them have, ms. */
const stopGrace = 3000;

interface Kept {
  readonly service: Service;
  phase: 'waiting' | 'begun' | 'failed' | 'stopped';
  /** Why it could not begin. */
  failure?: Reason;
}

/** The services of a daemon: it begins them in their order, reloads them, stops them side by side, and knows how they are. */
export class ServiceSet {
  readonly #parts: ServiceSetParts;
  readonly #kept: readonly Kept[];
  /** By name, as it was looked at last. */
  #known = new Map<string, ServiceHealth>();
  /** As it was told last, as text. */
  #told = '';

  constructor(services: readonly Service[], parts: ServiceSetParts) {
    this.#parts = parts;
    this.#kept = services.map((service) => ({ service, phase: 'waiting' }));
  }

  /** Begins the required ones, one after the other, and the others without waiting. @throws what a required one throws */
  async begin(): Promise<void> {
    for (const kept of this.#kept) {
      if (kept.service.required) {
        await kept.service.begin();
        kept.phase = 'begun';
      } else this.#beginBeside(kept).catch(() => undefined);
    }
    this.changed();
  }

  /** @throws what a required one throws: those after it are not reloaded then */
  async reload(read: RunConfiguration): Promise<void> {
    for (const { service, phase } of this.#kept) {
      if (phase !== 'begun') continue;
      try {
        await service.reload?.(read);
      } catch (error) {
        if (service.required) throw error;
        this.#parts.log.error('a service could not be reloaded', {
          service: service.name,
          ...toReason(error),
        });
      }
    }
    this.changed();
  }

  /** Stops all, side by side, and those that go on until then after them. @param end monotonic ms */
  async stop(end: number): Promise<void> {
    const isLast = ({ service }: Kept) => service.last === true;
    await Promise.all(this.#kept.filter((kept) => !isLast(kept)).map((kept) => this.#stop(kept, end)));
    await Promise.all(this.#kept.filter(isLast).map((kept) => this.#stop(kept, end)));
    this.changed();
  }

  get health(): ServiceHealth[] {
    const now = this.#parts.clock.now();
    const health = this.#kept.flatMap((kept) => healthOf(kept, this.#known, now));
    this.#known = new Map(health.map((one) => [one.name, one]));
    return health;
  }

  /** A state may have changed: it is told, if so. */
  changed(): void {
    const { health } = this;
    const text = JSON.stringify(health);
    if (text === this.#told) return;
    this.#told = text;
    this.#parts.changed(health);
  }

  async #beginBeside(kept: Kept): Promise<void> {
    try {
      await kept.service.begin();
      if (kept.phase === 'waiting') kept.phase = 'begun';
    } catch (error) {
      const reason = toReason(error);
      kept.phase = 'failed';
      kept.failure = reason;
      this.#parts.log.error('a service could not begin', { service: kept.service.name, ...reason });
    }
    this.changed();
  }

  async #stop(kept: Kept, end: number): Promise<void> {
    const { clock, log } = this.#parts;
    const { service } = kept;
    const { name } = service;
    try {
      // One that has not begun yet may be on its way.
      if (kept.phase === 'failed') return;
      const time = Math.max(0, end - clock.monotonic()) + stopGrace;
      if (!(await within(clock, time, service.stop(end))))
        log.warn('a service does not stop', { service: name });
    } catch (error) {
      log.error('a service failed at its stop', { service: name, ...toReason(error) });
    } finally {
      kept.phase = 'stopped';
    }
  }
}

function healthOf(
  { service, phase, failure }: Kept,
  known: ReadonlyMap<string, ServiceHealth>,
  now: number,
): ServiceHealth[] {
  const parts: readonly ServicePart[] = phase === 'begun' ? service.health() : [{ name: service.name }];
  return parts.map(({ name, trouble, note }) => {
    const state = stateOf(phase, trouble);
    const before = known.get(name);
    const since = before?.state === state ? before.since : now;
    const reason = failure ?? trouble ?? note;
    return reason === undefined ? { name, state, since } : { name, state, since, reason };
  });
}

function stateOf(phase: Kept['phase'], trouble: Reason | undefined): ServiceState {
  switch (phase) {
    case 'waiting':
      return 'starting';
    case 'begun':
      return trouble === undefined ? 'up' : 'failing';
    case 'failed':
      return 'failing';
    case 'stopped':
      return 'stopped';
  }
}
