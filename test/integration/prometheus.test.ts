import { execFileSync, spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { Site } from '../support/site.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

const source = resolve(import.meta.dirname, '../tools/promlint');

/** The parser and the rules are Prometheus' own: what `promtool check metrics` runs. */
describe('Prometheus', function () {
  this.timeout(300_000);
  let promlint: string;

  before(() => {
    promlint = join(temporaryDirectory(), 'promlint');
    execFileSync('go', ['build', '-o', promlint, '.'], { cwd: source, stdio: 'pipe' });
  });

  const check = (input: string) => {
    const { status, stdout, stderr } = spawnSync(promlint, { input, encoding: 'utf8' });
    return { status, output: stdout + stderr };
  };

  it('accepts the metrics of a daemon at work, odd names and all', async () => {
    const odd = 'back\\slash, "quotes" and\nnew line';
    const site = new Site({
      queues: { Q: { maxWorkers: 2 }, [odd]: { maxWorkers: 1 }, REFUSED: { maxWorkers: 'many' } },
      settings: { http: { enabled: true, port: 0 } },
      pilot: 'sleep 0.2; exit 3',
    });
    try {
      const daemon = site.start();
      const url = await until('it listens', () => / listening url=(\S+)/.exec(daemon.output())?.[1]);
      const text = await until('a worker failed', async () => {
        const metrics = await (await fetch(`${url}metrics`)).text();
        return /^thresher_failures_total\{queue="Q",code="exit-status"\} [1-9]/m.test(metrics) && metrics;
      });
      const { status, output } = check(text);
      expect(status, output).to.equal(0);
      expect(output).to.match(/^\d+ metrics\n$/);
      expect(text).to.contain('queue="back\\\\slash, \\"quotes\\" and\\nnew line"');
    } finally {
      await site.clean();
    }
  });

  it('would refuse what cannot be parsed, and what breaks a rule', () => {
    const help = '# HELP a_seconds Time.\n';
    expect(check(`${help}# TYPE a_seconds gauge\na_seconds{queue="Q} 1\n`).status).to.equal(1);
    expect(check(`${help}# TYPE a_seconds counter\na_seconds 1\n`)).to.deep.equal({
      status: 3,
      output: 'a_seconds counter metrics should have "_total" suffix\n',
    });
    expect(check(`${help}# TYPE a_seconds gauge\na_seconds 1\n`).status).to.equal(0);
  });
});
