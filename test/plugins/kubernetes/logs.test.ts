import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { LogRequest } from '../../../src/plugins/contracts/index.ts';
import { KubernetesStub, marked } from '../../support/kubernetes-stub.ts';
import { workerOf } from '../../support/samples.ts';
import { json, status } from '../../support/scripted-server.ts';
import { until } from '../../support/until.ts';

/** What becomes of one request for the log: what is said, and how it ends. */
type Say = (response: ServerResponse) => void;

const second = '2026-01-02T03:04:05';

/** As the node writes lines that all were said in one second. */
function stamped(words: string): string {
  const written = ['one', 'two', 'three'];
  return words.replace(/^\w+/gm, (word) => {
    const nanoseconds = `${written.findIndex((whole) => whole.startsWith(word)) + 1}`.padStart(9, '0');
    return `${second}.${nanoseconds}Z ${word}`;
  });
}

describe('thresher logs --follow', () => {
  let stub: KubernetesStub;
  /** One per request for the log; the pilot ends with the last. */
  let script: Say[];
  /** Asked for with each, ms UTC; undefined: from the beginning. */
  let since: (number | undefined)[];
  let hasTimes: boolean;
  let text: string;

  const put = (phase: string) => {
    const at = new Date().toISOString();
    const state = phase === 'Running' ? { running: { startedAt: at } } : { terminated: { exitCode: 0 } };
    stub.pods.set('pod', {
      metadata: marked(1, { name: 'pod' }),
      spec: { containers: [{ name: 'pilot' }] },
      status: { phase, containerStatuses: [{ name: 'pilot', state }] },
    });
  };

  beforeEach(async () => {
    script = [];
    since = [];
    text = '';
    stub = await KubernetesStub.start();
    put('Running');
    stub.answer = (response, { resource }, { url }) => {
      if (resource !== 'pods/log') return false;
      const { searchParams } = new URL(url, 'http://stub');
      const time = searchParams.get('sinceTime');
      since.push(time === null ? undefined : Date.parse(time));
      hasTimes = searchParams.get('timestamps') === 'true';
      if (script.length <= 1) put('Succeeded');
      (script.shift() ?? ((response) => response.end()))(response);
      return true;
    };
  });

  afterEach(() => stub.stop());

  const say =
    (words: string, then: Say): Say =>
    (response) => {
      response.writeHead(200);
      response.write(hasTimes ? stamped(words) : words);
      until('it was read', () => text.endsWith(words)).then(
        () => {
          then(response);
        },
        () => response.destroy(),
      );
    };
  const end: Say = (response) => response.end();
  const cut: Say = (response) => response.destroy();

  async function read(request: Partial<LogRequest> = {}, stop = new AbortController()): Promise<string> {
    const { logs } = stub.plugin('monitor');
    const whole = { stream: 'stdout', follow: true, ...request } as const;
    for await (const piece of logs?.read(workerOf(1), whole, stop.signal) ?? [])
      text += Buffer.from(piece).toString();
    return text;
  }

  it('goes on after the stream was ended while the pilot runs, from where it was', async () => {
    script = [say('one\n', end), say('two\n', end)];
    expect(await read()).to.equal('one\ntwo\n');
    expect(since[0]).to.equal(undefined);
    expect(since[1]).to.equal(Date.parse(`${second}Z`));
  });

  it('goes on after the connection was cut in the middle, from the last that was said', async () => {
    script = [say('one\n', cut), say('two\n', end)];
    expect(await read()).to.equal('one\ntwo\n');
    expect(since[1]).to.equal(Date.parse(`${second}Z`));
  });

  it('shows no line twice that the next stream begins with again', async () => {
    script = [say('one\ntwo\n', end), say('one\ntwo\nthree\n', cut), say('one\ntwo\nthree\n', end)];
    expect(await read()).to.equal('one\ntwo\nthree\n');
  });

  it('completes a line that was cut in its middle', async () => {
    script = [say('one\ntw', cut), say('one\ntwo\nthree\n', end)];
    expect(await read()).to.equal('one\ntwo\nthree\n');
  });

  it('waits for an API server that is away for a while', async () => {
    script = [say('one\n', cut), say('two\n', end)];
    const { answer } = stub;
    let refused = 0;
    stub.answer = (response, asked, seen) => {
      if (asked.verb !== 'list' || text === '' || refused === 2) return answer(response, asked, seen);
      refused++;
      if (refused === 1) response.destroy();
      else status(503, 'ServiceUnavailable', 'starting')(response, seen);
      return true;
    };
    expect(await read()).to.equal('one\ntwo\n');
    expect(refused).to.equal(2);
  });

  it('says at once where nothing can be read from the beginning', async () => {
    script = [cut, say('one\n', end)];
    let thrown: unknown;
    await read().catch((error: unknown) => (thrown = error));
    expect(thrown).to.include({ code: 'kubernetes-unreachable' });
  });

  it('ends without --follow where the log ends, and is an error where it is cut', async () => {
    script = [say('one\n', end), say('two\n', end)];
    expect(await read({ follow: false })).to.equal('one\n');
    text = '';
    script = [say('one\n', cut), say('two\n', end)];
    let thrown: unknown;
    await read({ follow: false }).catch((error: unknown) => (thrown = error));
    expect(thrown).to.include({ code: 'kubernetes-unreachable' });
  });

  it('ends quietly where the Pod is gone after the stream was cut', async () => {
    script = [
      say('one\n', (response) => {
        stub.pods.clear();
        response.destroy();
      }),
      end,
    ];
    expect(await read()).to.equal('one\n');
  });

  it('ends when whoever reads it does not want any more', async () => {
    const stop = new AbortController();
    script = [
      say('one\n', () => {
        stop.abort();
      }),
      end,
    ];
    expect(await read({}, stop)).to.equal('one\n');
    expect(since).to.have.length(1);
  });

  it('is read though nulls stand among the parts of its Pod', async () => {
    const pod = stub.pods.get('pod')!;
    const { spec, status } = pod as unknown as Record<string, { containers: []; containerStatuses: [] }>;
    stub.pods.set('pod', {
      ...pod,
      spec: { ...spec, containers: [null, ...(spec?.containers ?? [])], tolerations: [null] },
      status: { ...status, containerStatuses: [null, ...(status?.containerStatuses ?? [])] },
    });
    script = [say('one\n', end)];
    expect(await read({ follow: false })).to.equal('one\n');
  });

  it('leaves the last lines out of a copy of the Job that somebody made', async () => {
    stub.pods.set('copy', {
      metadata: {
        ...marked(1, { name: 'copy' }),
        creationTimestamp: new Date().toISOString(),
        labels: { ...marked(1).labels, 'batch.kubernetes.io/job-name': 'copy-of-factory-1' },
      },
      spec: { containers: [{ name: 'pilot' }] },
      status: { phase: 'Running', containerStatuses: [{ name: 'pilot', state: { running: {} } }] },
    });
    const names: string[] = [];
    stub.answer = (response, { resource, name }, seen) => {
      if (resource !== 'pods/log') return false;
      names.push(name);
      json(200, {})(response, seen);
      return true;
    };
    await read({ follow: false });
    expect(names).to.deep.equal(['pod']);
  });
});
