/**
 * What every backend must do with payloads: each part reaches the worker as it is, and a secret reaches it alone. The worker
 * itself is the witness: a script of the payload, for a plain sh, writes what it sees to stdout.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setInterval } from 'node:timers';
import { expect } from 'chai';
import type {
  Monitor,
  Payload,
  PayloadFile,
  Submitter,
  SubmitOutcome,
  Sweeper,
  Worker,
  WorkerToStart,
} from '../../src/plugins/contracts/index.ts';
import { payloadBounds } from '../../src/worker/payload-check.ts';
import { isFinal } from '../../src/worker/status.ts';
import { until } from '../support/until.ts';

/** The queues of a backend that is tested with payloads, by the template that each has. */
export type PayloadQueue = 'plain' | 'values';

/** One backend under test with payloads. */
export interface PayloadBackend {
  readonly submitter: Submitter;
  readonly monitor: Monitor;
  readonly sweeper: Sweeper;
  /** A worker that was never used before. Its queue has the template of `payloadTemplates`. */
  worker(queue: PayloadQueue): Worker;
  /** Plugins made anew, as after a restart of the daemon. */
  restarted(): { readonly submitter: Submitter; readonly sweeper: Sweeper };
  /** The stdout of a worker that has ended. */
  output(worker: Worker): Promise<string>;
  /**
   * All that others may read of these workers: lines of the daemon's log, marks and other objects but for the one that holds the
   * secret, submit descriptions, files that are not 0600.
   */
  traces(workers: readonly Worker[]): Promise<string>;
  clean(): Promise<void>;
}

/** One submitter for workers of several queues, each by its own. */
export function byQueue<Queue extends string>(submitters: Readonly<Record<Queue, Submitter>>): Submitter {
  const all = Object.values<Submitter>(submitters);
  const [first] = all;
  if (first === undefined) throw new Error('there are no queues');
  return {
    preflight: (signal) => first.preflight(signal),
    find: (workers, signal) => first.find(workers, signal),
    submit: async (workers, signal) => {
      const outcomes = new Map<number, SubmitOutcome>();
      for (const [queue, some] of Map.groupBy(workers, (worker) => worker.queue as Queue))
        for (const [id, outcome] of await submitters[queue].submit(some, signal)) outcomes.set(id, outcome);
      return outcomes;
    },
  };
}

/** Witnesses what it sees. Plain sh, with the tools of busybox. */
const witness = `#!/bin/sh
hex() { od -An -v -tx1 | tr -d ' \\n'; echo; }
printf 'argv '; for word; do printf '%s\\0' "$word"; done | hex
printf 'pwd '; pwd -P | tr -d '\\n' | hex
printf 'env '; od -An -v -tx1 /proc/self/environ | tr -d ' \\n'; echo
[ -n "$THRESHER_PAYLOAD_DIR" ] || exit 0
cd "$THRESHER_PAYLOAD_DIR" || exit 9
printf 'dir '; pwd -P | tr -d '\\n' | hex
# On Kubernetes the names are links into a directory whose name begins with two dots.
find -L . -name '..?*' -prune -o -type f -exec sh -c '
  for file; do
    printf "file %s %s " "$(stat -L -c %a "$file")" "$(sha256sum <"$file" | cut -c1-64)"
    printf %s "$file" | od -An -v -tx1 | tr -d " \\n"
    echo
  done' sh {} +
`;

/** A pilot that runs the witness where its payload has one. Each template runs it by `/bin/sh -c SCRIPT pilot ARGUMENT...`. */
const pilot =
  'if [ -n "$THRESHER_PAYLOAD_DIR" ]; then exec /bin/sh "$THRESHER_PAYLOAD_DIR/witness.sh" "$@"; fi; ' +
  "printf 'argv '; for word; do printf '%s\\0' \"$word\"; done | od -An -v -tx1 | tr -d ' \\n'; echo; " +
  "printf 'env '; od -An -v -tx1 /proc/self/environ | tr -d ' \\n'; echo";

/** What the template of each queue says, in the words of no backend. */
export const payloadTemplates: Readonly<
  Record<
    PayloadQueue,
    {
      readonly script: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    }
  >
> = {
  plain: { script: pilot, args: ['of-the-template'], env: { KEPT: 'template', OVER: 'template' } },
  values: {
    script: pilot,
    args: ['before ${payload.word} after'],
    env: { FROM_VALUE: '${payload.image}' },
  },
};

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const secret = `secret-${randomBytes(12).toString('hex')}`;

const oddWords = [
  '',
  ' ',
  'two words',
  '"double"',
  "it's",
  'a\nnew line\n',
  '$(id) `id` ${HOME} $HOME $$',
  '$(KEPT) $$(KEPT) $',
  '\\ \\n back\\slash\\',
  '-n',
  '--',
  '*',
  '~',
  'a,b;c&d|e>f<g#h%i',
  'ümläut 日本 🚜',
  '\t',
  '',
];

const oddNames = [
  'plain.txt',
  'with space',
  'a,b;c',
  '"quoted"',
  "it's",
  'new\nline',
  '-rf',
  '.hidden',
  'ümläut-日本',
  '$HOME',
  '$(id)',
  'back\\slash',
  '*',
  'sub/deep er/inner',
  'sub/beside',
  'n'.repeat(200),
];

const file = (name: string, content: string | Buffer, mode = 0o644): PayloadFile => ({
  name,
  mode,
  content: Buffer.from(content).toString('base64'),
});
const secretFile = (name: string, content: string): PayloadFile => ({
  ...file(name, content, 0o600),
  secret: true,
});
const witnessFile = file('witness.sh', witness, 0o755);

const oddFiles: readonly PayloadFile[] = [
  witnessFile,
  file('every byte', everyByte),
  file('empty', ''),
  file('private', 'for its owner', 0o600),
  file('read-only', 'for all', 0o444),
  ...oddNames.map((name) => file(name, `content of ${name}`)),
];
const secretFiles = [secretFile('.token', secret), secretFile('sub/other token', `${secret}-two`)];

const oddEnv: Readonly<Record<string, string>> = {
  ...Object.fromEntries(oddWords.map((word, index) => [`ODD_${index}`, word])),
  OVER: 'payload',
  dir: 'a name that scripts use',
  status: 'another',
};

/** As much as fits, to the byte. */
function largePayload(size: number = payloadBounds.bytes): Payload {
  const rest = Buffer.byteLength(witness) + Buffer.byteLength('witness.sh') + Buffer.byteLength('large');
  // Not compressible.
  const large = file('large', randomBytes(size - rest));
  return { files: [witnessFile, large] };
}

const cases = {
  'files, arguments and variables': { files: oddFiles, argv: ['./witness.sh', ...oddWords], env: oddEnv },
  'secret files': { files: [witnessFile, ...secretFiles], argv: ['./witness.sh'] },
  'files alone': { files: [witnessFile, file('input', 'in')] },
  'arguments alone': { argv: ['/bin/sh', '-c', witness, 'name', 'one', ...oddWords] },
  'variables alone': { env: oddEnv },
  '1 MiB': largePayload(),
  values: {
    values: { word: 'a "word", $HOME $(KEPT) ${hostname} \\ and\' more', image: 'registry.example/a b:1' },
  },
  'no payload': undefined,
} as const satisfies Readonly<Record<string, Payload | undefined>>;
type Case = keyof typeof cases;

/** What the witness told. */
interface Testimony {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly pwd: string | undefined;
  readonly dir: string | undefined;
  readonly files: ReadonlyMap<string, string>;
}

function testimonyOf(output: string): Testimony {
  const lines = output.split('\n').map((line) => line.split(' '));
  const text = (hex = '') => Buffer.from(hex, 'hex').toString('utf8');
  const said = (what: string) => lines.find(([word]) => word === what);
  const list = (what: string) => text(said(what)?.[1]).split('\0').slice(0, -1);
  const one = (what: string) => (said(what) === undefined ? undefined : text(said(what)?.[1]));
  const variables = list('env').map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at), pair.slice(at + 1)] as const;
  });
  return {
    argv: list('argv'),
    env: Object.fromEntries(variables),
    pwd: one('pwd'),
    dir: one('dir'),
    files: new Map(
      lines
        .filter(([word]) => word === 'file')
        .map(([, mode = '', hash = '', name]) => [text(name).replace(/^\.\//, ''), `${mode} ${hash}`]),
    ),
  };
}

function asTold(files: readonly PayloadFile[]): Map<string, string> {
  return new Map(
    files.map(({ name, mode, content }) => {
      const hash = createHash('sha256').update(content, 'base64').digest('hex');
      return [name, `${mode.toString(8)} ${hash}`];
    }),
  );
}

/** Every form in which a secret could stand somewhere. */
const secretForms = [
  secret,
  Buffer.from(secret).toString('hex'),
  // Base64 without what depends on the bytes around it.
  ...[0, 1, 2].map((shift) =>
    Buffer.from(' '.repeat(shift) + secret)
      .toString('base64')
      .slice(4, -4),
  ),
];

const hasSecret = (text: string) => secretForms.some((form) => text.includes(form));

/** Looks at arguments and environment of each process of the machine until it is stopped. @returns those with a secret */
function watchProcesses(): () => readonly string[] {
  const seen = new Set<string>();
  const read = (path: string) => {
    try {
      return readFileSync(path, 'latin1');
    } catch {
      return '';
    }
  };
  const look = () => {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
      for (const what of ['cmdline', 'environ'])
        if (hasSecret(read(`/proc/${pid}/${what}`)))
          seen.add(`${what} of ${read(`/proc/${pid}/comm`).trim()}`);
  };
  const timer = setInterval(look, 50);
  return () => {
    clearInterval(timer);
    return [...seen];
  };
}

export function describePayloadContract(name: string, make: () => Promise<PayloadBackend>): void {
  describe(`the payload of a worker: ${name}`, function () {
    this.timeout(300_000);
    const { signal } = new AbortController();
    let backend: PayloadBackend;
    let inProcesses: readonly string[];
    const workers = new Map<string, Worker>();
    const told = new Map<string, Testimony>();
    const outcomesTold: string[] = [];

    const start = (what: Case): WorkerToStart => {
      const worker = backend.worker(what === 'values' ? 'values' : 'plain');
      workers.set(what, worker);
      const payload: Payload | undefined = cases[what];
      return payload === undefined ? worker : { ...worker, payloadId: what, payload };
    };
    const of = (what: Case | 'a retry'): Testimony => {
      const testimony = told.get(what);
      if (testimony === undefined) throw new Error(`nothing was told of ${what}`);
      return testimony;
    };
    const submitted = async (toStart: readonly WorkerToStart[]) => {
      const outcomes = await backend.submitter.submit(toStart, signal);
      outcomesTold.push(JSON.stringify([...outcomes]));
      return outcomes;
    };
    const outcomeOf = async (worker: WorkerToStart): Promise<SubmitOutcome | undefined> =>
      (await submitted([worker])).get(worker.workerId);

    before(async () => {
      backend = await make();
      const stop = watchProcesses();
      // First, since its first attempt is given up before the others begin.
      const retried = backend.worker('plain');
      const payload: Payload = cases['secret files'];
      const found = (await backend.submitter.find([{ ...retried, payloadId: 'retry' }], signal)).get(
        retried.workerId,
      );
      if (found?.kind !== 'absent') throw new Error(`not absent: ${JSON.stringify(found)}`);
      const late = await outcomeOf({ ...retried, payloadId: 'retry', payload });
      if (late?.kind === 'accepted') throw new Error('an attempt that was given up was accepted');
      workers.set('a retry', { ...retried, attempt: 2 });
      const second: WorkerToStart = { ...retried, attempt: 2, payloadId: 'retry', payload };
      const toStart = [second, ...(Object.keys(cases) as Case[]).map(start)];
      const outcomes = await submitted(toStart);
      for (const [what, worker] of workers) {
        const outcome = outcomes.get(worker.workerId);
        if (outcome?.kind !== 'accepted')
          throw new Error(`${what}: not accepted: ${JSON.stringify(outcome)}`);
        workers.set(what, { ...worker, handle: outcome.handle });
      }
      for (const [what, worker] of workers) {
        const last = await until(
          `${what} has ended`,
          async () => {
            const result = (await backend.monitor.check([worker], signal)).get(worker.workerId);
            const observation = result?.kind === 'observed' ? result.observation : undefined;
            return observation !== undefined && isFinal(observation.status) && observation;
          },
          240_000,
        );
        const output = await backend.output(worker);
        if (last.status !== 'finished') throw new Error(`${what}: ${JSON.stringify(last)}: ${output}`);
        told.set(what, testimonyOf(output));
      }
      inProcesses = stop();
    });

    after(() => backend.clean());

    it('hands on each file with its name, its bytes and its mode, also an empty one', () => {
      const { files } = of('files, arguments and variables');
      for (const [name, expected] of asTold(oddFiles)) expect(files.get(name), name).to.equal(expected);
      expect(of('secret files').files.get('.token')).to.equal(asTold(secretFiles).get('.token'));
      expect(of('secret files').files.get('sub/other token')).to.equal(
        asTold(secretFiles).get('sub/other token'),
      );
    });

    it('hands on as much as a payload may have, to the byte', () => {
      const { files } = of('1 MiB');
      for (const [name, expected] of asTold(cases['1 MiB'].files ?? []))
        expect(files.get(name), name).to.equal(expected);
    });

    it('hands on each argument as it is, and starts the worker in the directory of its files', () => {
      const { argv, pwd, dir } = of('files, arguments and variables');
      expect(argv).to.deep.equal(oddWords);
      expect(pwd).to.equal(dir);
    });

    it('hands on arguments without files, and has a directory for them', () => {
      const { argv, pwd, dir } = of('arguments alone');
      expect(argv).to.deep.equal(['one', ...oddWords]);
      expect(pwd).to.be.a('string').that.is.not.empty;
      expect(pwd).to.equal(dir);
    });

    it('runs the command of the template where the payload has no arguments', () => {
      expect(of('files alone').argv).to.deep.equal(['of-the-template']);
      expect([...of('files alone').files.keys()]).to.include.members(['witness.sh', 'input']);
    });

    it("hands on each variable as it is; it wins over the template's, whose others stay", () => {
      for (const what of ['files, arguments and variables', 'variables alone'] as const) {
        expect(of(what).env, what).to.include(oddEnv);
        expect(of(what).env.KEPT, what).to.equal('template');
      }
    });

    it('fills values into the template as they are', () => {
      const { word, image } = cases.values.values;
      expect(of('values').argv).to.deep.equal([`before ${word} after`]);
      expect(of('values').env.FROM_VALUE).to.equal(image);
    });

    it('runs a worker without a payload as before', () => {
      const { argv, env } = of('no payload');
      expect(argv).to.deep.equal(['of-the-template']);
      expect(env).to.include({ KEPT: 'template', OVER: 'template' });
      expect(env).not.to.have.property('THRESHER_PAYLOAD_DIR');
    });

    it('gives a second attempt its payload, whatever became of the first', () => {
      const { files } = of('a retry');
      for (const [name, expected] of asTold(cases['secret files'].files))
        expect(files.get(name), name).to.equal(expected);
    });

    it('finds and lists a worker with a payload after a restart, and its mark has nothing of the payload', async () => {
      const worker = backend.worker('plain');
      // Some backends list only what has not ended.
      const payload: Payload = { files: secretFiles, argv: ['/bin/sh', '-c', 'exec sleep 1000'] };
      const outcome = await outcomeOf({ ...worker, payloadId: 'runs', payload });
      if (outcome?.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(outcome)}`);
      const { handle } = outcome;
      const { submitter, sweeper } = backend.restarted();
      const found = (await submitter.find([worker], signal)).get(worker.workerId);
      expect(found?.kind === 'found' && found.handle.batchID).to.equal(handle.batchID);
      const listed = await sweeper.list(signal);
      const mark = listed.find(({ identity }) => identity?.workerId === worker.workerId);
      expect(mark?.identity).to.deep.include({ name: worker.name, origin: worker.origin });
      expect(mark?.identity).not.to.have.property('payload');
      // So that a row that is made of the mark is never tried again without its payload.
      expect(mark?.identity).to.have.property('payloadId', 'runs');
      expect(hasSecret(JSON.stringify(listed))).to.equal(false);
    });

    it('rejects for good what is too large, or has a wrong form, and shows no secret then', async () => {
      const bad: readonly (readonly [code: string, payload: Payload | undefined, queue: PayloadQueue])[] = [
        ['payload-too-large', largePayload(payloadBounds.bytes + 1), 'plain'],
        ['payload-wrong', { files: [secretFile('../outside', secret)] }, 'plain'],
        ['payload-wrong', { files: [{ ...secretFile('a', secret), content: `${secret}!` }] }, 'plain'],
        ['payload-value-missing', { values: { word: 'w' }, files: [secretFile('a', secret)] }, 'values'],
        ['payload-value-missing', undefined, 'values'],
      ];
      for (const [code, payload, queue] of bad) {
        const worker = backend.worker(queue);
        const outcome = await outcomeOf(payload === undefined ? worker : { ...worker, payload });
        expect(outcome, code).to.deep.include({ kind: 'rejected', permanent: true });
        expect(outcome?.kind === 'rejected' && outcome.error.code).to.equal(code);
      }
      expect(hasSecret(outcomesTold.join('\n'))).to.equal(false);
    });

    it('shows a secret in no argument and no environment of a process, and in nothing that others may read', async () => {
      expect(inProcesses).to.deep.equal([]);
      const traces = await backend.traces([...workers.values()]);
      expect(traces).to.include(String(workers.get('secret files')?.workerId));
      expect(hasSecret(traces)).to.equal(false);
      for (const { env } of told.values()) expect(hasSecret(JSON.stringify(env))).to.equal(false);
    });

    it('removes all traces of a worker with its payload', async () => {
      const all = [...workers.values()];
      await until('they are gone', async () => {
        const outcomes = await backend.sweeper.remove(all, signal);
        return all.every(({ workerId, attempt }) => {
          const outcome = outcomes.get(workerId);
          // A second attempt keeps its place for a while: an earlier one may still come.
          return outcome?.kind === 'gone' || (attempt > 1 && outcome?.kind === 'pending');
        });
      });
    });
  });
}
