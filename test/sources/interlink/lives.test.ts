import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { FastifyInstance } from 'fastify';
import type { ContainerReport, PodReport } from '../../../src/sources/interlink/pod/report.ts';
import type { WorkerStatus } from '../../../src/worker/status.ts';
import { Dice } from '../../campaign/dice.ts';
import { SidecarUnderTest } from '../../support/interlink-sidecar.ts';
import { ownedPrefix, removeDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';
import { type KubeletPod, type TrackedByKubelet, VirtualKubelet } from '../../support/virtual-kubelet.ts';

const lives = 600;
const atOnce = 25;
/** Thousands of files are made durable: a disk would take most of the time. */
const memory = '/dev/shm';

const seed = 20_261_118;

/** Each end of a job that the factory can tell. */
const ends: readonly WorkerStatus[] = ['finished', 'failed', 'cancelled', 'missed'];
/** The files that a job leaves at its end: the report of the ends, the one before it, none, or what is no report. */
const lastWords = ['whole', 'whole', 'whole', 'old', 'none', 'damaged'] as const;

describe('whole lives of Pods, as the virtual kubelet of interLink sees them', () => {
  let root: string;
  let sidecar: SidecarUnderTest;
  let app: FastifyInstance;
  const kubelet = new VirtualKubelet(async (method, url, body) => {
    const payload = JSON.stringify(body);
    const headers = { 'content-type': 'application/json' };
    const answer = await app.inject({ method, url, headers, payload });
    return { status: answer.statusCode, text: answer.payload };
  });

  before(async () => {
    root = mkdtempSync(ownedPrefix(existsSync(memory) ? memory : tmpdir()));
    sidecar = new SidecarUnderTest(root);
    app = await sidecar.start();
  });
  after(async () => {
    await sidecar.stop();
    removeDirectory(root);
  });

  async function restart(): Promise<void> {
    await sidecar.stop();
    sidecar = sidecar.next();
    app = await sidecar.start();
  }

  /** A Pod with its job, which goes on by chance. */
  class Life {
    readonly pod: KubeletPod;
    tracked!: TrackedByKubelet;
    readonly steps: string[] = [];
    /** Whether a report said that each container ended with 0. */
    saidSuccess = false;
    readonly #dice: Dice;
    #states = new Map<string, ContainerReport>();

    constructor(index: number) {
      this.#dice = new Dice(seed + index);
      const named = (kind: string, count: number) =>
        Array.from({ length: count }, (_, at) => ({
          name: `${kind}-${at}`,
          image: 'busybox',
          command: ['true'],
        }));
      const metadata = { name: `life-${index}`, namespace: 'default', uid: randomUUID(), annotations: {} };
      const inits = named('init', this.#below(3));
      const spec = {
        containers: named('main', 1 + this.#below(3)),
        initContainers: inits.length > 0 ? inits : null,
      };
      this.pod = { metadata, spec };
      this.#begin();
    }

    get uid(): string {
      return this.pod.metadata.uid;
    }

    chance(of: number): boolean {
      return this.#dice.throw() < of;
    }

    pick<T>(list: readonly T[]): T {
      return list[this.#below(list.length)] as T;
    }

    async look(): Promise<void> {
      await kubelet.look([this.tracked]);
      if (this.tracked.phase === 'Succeeded')
        expect(this.saidSuccess, `it succeeded after ${this.steps.join(', ')}`).to.equal(true);
    }

    async tell(status: WorkerStatus, more: object = {}): Promise<void> {
      this.steps.push(status);
      await sidecar.tell(this.uid, { status, ...more });
      if (this.chance(0.5)) await this.look();
    }

    /** One container goes on, in the order of the runner. */
    advance(): void {
      const { initContainers, containers } = this.pod.spec;
      const all = [...this.#states];
      const inits = all.filter(([name]) => (initContainers ?? []).some((one) => one.name === name));
      const mains = all.filter(([name]) => containers.some((one) => one.name === name));
      const isOver = ([, { state }]: (typeof all)[number]) => state === 'terminated';
      const nextInit = inits.find((one) => !isOver(one));
      const hasFailed = inits.some(([, { exitCode = 0 }]) => exitCode !== 0);
      const [name, now] =
        nextInit ??
        (hasFailed ? mains.find((one) => !isOver(one)) : this.pick(mains.filter((one) => !isOver(one)))) ??
        [];
      if (name === undefined || now === undefined) return;
      const times = { startedAt: '2026-11-20T10:00:00Z' };
      if (hasFailed) this.#states.set(name, { ...now, state: 'terminated', exitCode: 1, ready: false });
      else if (now.state === 'waiting')
        this.#states.set(name, { ...now, ...times, state: 'running', ready: this.chance(0.8) });
      else
        this.#states.set(name, {
          ...now,
          ...this.pick([
            { exitCode: 0 },
            { exitCode: 0 },
            { exitCode: 0 },
            { exitCode: 1 },
            { exitCode: 0, signal: 9 },
          ]),
          state: 'terminated',
          ready: false,
          finishedAt: '2026-11-20T11:00:00Z',
        });
    }

    get isReported(): boolean {
      return [...this.#states.values()].every(({ state }) => state === 'terminated');
    }

    /** The job says how its containers are: by its file, or by the door. @returns whether each has ended with 0 */
    report(byDoor: boolean): boolean {
      const report: PodReport = { version: 1, containers: Object.fromEntries(this.#states) };
      this.steps.push(
        `says ${[...this.#states.values()].map(({ state, exitCode }) => `${state} ${exitCode ?? ''}`).join('/')}`,
      );
      const good = [...this.#states.values()].every(
        ({ exitCode, signal }) => exitCode === 0 && signal === undefined,
      );
      this.saidSuccess ||= good;
      if (byDoor) sidecar.book.get(this.uid)?.takeReport(report);
      else this.leave(JSON.stringify(report));
      return good;
    }

    leave(text: string): void {
      const directory = join(root, 'output', this.uid);
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, 'pod-status.json'), text);
    }

    async runs(): Promise<void> {
      await this.tell('running', { startTime: 1_795_000_000_000 });
      for (let steps = this.#below(8); steps > 0; steps--) {
        this.advance();
        if (this.chance(0.5)) this.report(this.chance(0.5));
        if (this.chance(0.5)) await this.look();
      }
    }

    async isEvicted(): Promise<void> {
      await this.tell('idle', { nativeStatus: 'idle' });
      this.#begin();
    }

    /** @returns whether the Pod must succeed */
    async ends(): Promise<boolean> {
      const status = this.pick(ends);
      const words = this.pick(lastWords);
      while (words === 'whole' && !this.isReported) this.advance();
      const wasOver = this.tracked.isOver;
      const isGood = words === 'whole' && this.report(false);
      if (words === 'damaged')
        this.leave(this.pick(['', '{', '{"version":2}', '[]', '{"version":1,"containers":{"main-0":{}}}']));
      await this.tell(status, { exitCode: this.pick([null, 0, 1, 137]), endTime: Date.now() });
      return isGood && !wasOver && status === 'finished';
    }

    #below(count: number): number {
      return this.#dice.between(0, count - 1);
    }

    #begin(): void {
      const { containers, initContainers } = this.pod.spec;
      const report = (init: boolean) => ({ init, state: 'waiting', ready: false, restarts: 0 }) as const;
      this.#states = new Map([
        ...(initContainers ?? []).map(({ name }) => [name, report(true)] as const),
        ...containers.map(({ name }) => [name, report(false)] as const),
      ]);
    }
  }

  it(`${lives} lives end, and as a success only if each container ended with 0`, async () => {
    const phases = { Succeeded: 0, Failed: 0 };
    for (let done = 0; done < lives; done += atOnce) {
      const batch = Array.from({ length: atOnce }, (_, at) => new Life(done + at));
      await Promise.all(
        batch.map(async (life) => {
          life.tracked = await kubelet.create(life.pod);
          expect(life.pod.metadata.annotations['JobID'], life.tracked.message).to.match(/\d/);
          if (life.chance(0.5)) await life.look();
          if (life.chance(0.3))
            await life.tell('idle', { nativeStatus: life.pick(['idle', 'held']), diagMessage: 'why' });
          if (life.chance(0.9)) await life.runs();
          if (life.chance(0.1)) {
            await life.isEvicted();
            if (life.chance(0.8)) await life.runs();
          }
        }),
      );
      if (done % 500 === 0) await restart();
      await Promise.all(
        batch.map(async (life) => {
          const mustSucceed = await life.ends();
          await until(
            () => `the Pod has ended after ${life.steps.join(', ')}`,
            async () => {
              await life.look();
              return life.tracked.isOver;
            },
          );
          if (mustSucceed) expect(life.tracked.phase, life.steps.join(', ')).to.equal('Succeeded');
          phases[life.tracked.phase as keyof typeof phases]++;
          expect(await kubelet.remove(life.tracked)).to.equal(200);
        }),
      );
    }
    expect(phases.Succeeded).to.be.greaterThan(lives / 20);
    expect(phases.Failed).to.be.greaterThan(lives / 4);
    await until('nothing is left of them', () => readdirSync(join(root, 'pods')).length === 0);
    expect(readdirSync(join(root, 'output'))).to.deep.equal([]);
  }).timeout(120_000);
});
