/**
 * The simulated backend of all daemons, in a process that outlives them: `node simulator.ts SOCKET SPEED HOURS`, as a child of the
 * benchmark.
 */
import { createServer, type Socket } from 'node:net';
import { report, sleep } from '../site.ts';
import { linesTo, type Question, type Seen } from './protocol.ts';
import { type Counts, type Record, SimulatedWorkers, tick } from './simulated.ts';

/** What the benchmark asks. */
export type Asked = 'begin' | 'counts' | 'records';
export type Told =
  | { readonly kind: 'ready' }
  | ({ readonly kind: 'counts' } & Counts & { readonly cpuSeconds: number })
  | { readonly kind: 'records'; readonly records: readonly Record[]; readonly lags: readonly number[] };

/** A connection shows everything again after so long, real ms. */
const showEvery = 30_000;
/** The way of a submission to the backend, and that of its answer, take up to so long, real ms: a SIGKILL may fall into each. */
const longestWay = 100;

const [socket = '', speed = '', hours = ''] = process.argv.slice(2);
const workers = new SimulatedWorkers({ speed: Number(speed), hours: Number(hours) });

interface Watcher {
  readonly id: number;
  readonly connection: string;
  readonly socket: Socket;
  changes: Seen[];
  shownAt: number;
}
const watchers = new Set<Watcher>();
workers.onChange = (connection, seen) => {
  for (const watcher of watchers) if (watcher.connection === connection) watcher.changes.push(seen);
};

const server = createServer((client) => {
  client.setEncoding('utf8');
  client.on('error', () => undefined);
  client.on('close', () => {
    for (const watcher of watchers) if (watcher.socket === client) watchers.delete(watcher);
  });
  client.on(
    'data',
    linesTo((line) => {
      const question = JSON.parse(line) as Question;
      // A call that came in is carried out, whatever becomes of the one who asked.
      answer(question, client).catch((error: unknown) => {
        process.stderr.write(`simulator: ${String(error)}\n`);
      });
    }),
  );
});

async function answer({ id, verb, ask }: Question, client: Socket): Promise<void> {
  const say = (given: unknown) => {
    if (!client.destroyed) client.write(`${JSON.stringify({ id, answer: given })}\n`);
  };
  switch (verb) {
    case 'room':
      say(workers.roomIn(ask.queue));
      break;
    case 'submit': {
      await sleep(Math.random() * longestWay);
      const now = Date.now();
      const there = ask.workers.filter((one) => workers.start(one, now)).map(({ workerId }) => workerId);
      await sleep(Math.random() * longestWay);
      say(there);
      break;
    }
    case 'find':
      say(workers.find(ask.workers));
      break;
    case 'check':
      say(workers.check(ask.workers));
      break;
    case 'kill':
      workers.kill(ask.workers, Date.now());
      say(true);
      break;
    case 'remove':
      workers.remove(ask.names, Date.now());
      say(true);
      break;
    case 'list':
      say(workers.on(ask.connection));
      break;
    case 'watch':
      watchers.add({ id, connection: ask.connection, socket: client, changes: [], shownAt: -Infinity });
      break;
    case 'unwatch':
      for (const watcher of watchers)
        if (watcher.socket === client && watcher.id === id) watchers.delete(watcher);
  }
}

function show(watcher: Watcher, now: number): void {
  const { id, socket: client, connection, changes } = watcher;
  const say = (shows: 'all' | 'changes', seen: readonly Seen[]) => {
    if (!client.destroyed) client.write(`${JSON.stringify({ id, shows, seen })}\n`);
  };
  watcher.changes = [];
  if (now - watcher.shownAt >= showEvery) {
    watcher.shownAt = now;
    say(
      'all',
      workers.on(connection).map(({ seen }) => seen),
    );
  } else if (changes.length > 0) say('changes', changes);
}

process.on('message', (asked: Asked) => {
  if (asked === 'begin') workers.begin(Date.now());
  const { user, system } = process.cpuUsage();
  const told: Told =
    asked === 'records'
      ? { kind: 'records', records: workers.records(), lags: workers.lags }
      : { kind: 'counts', cpuSeconds: (user + system) / 1e6, ...workers.counts };
  report(told).catch(() => undefined);
});
process.on('disconnect', () => process.exit(0));
server.listen(socket, () => {
  report({ kind: 'ready' } satisfies Told).catch(() => undefined);
});
for (;;) {
  const now = Date.now();
  workers.advance(now);
  for (const watcher of watchers) show(watcher, now);
  await sleep(tick);
}
