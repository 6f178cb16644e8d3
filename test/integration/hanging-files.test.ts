import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { type RunningDaemon, Site, type SiteOptions } from '../support/site.ts';
import { until } from '../support/until.ts';

const module = join(import.meta.dirname, '../support/plugins/hanging-throttler.ts');
/** How long a stop of these sites may take until it is done by force, ms: `shutdownTimeout` and 10 s. */
const byForce = 10_500;

describe('promise 8: a stop ends in bounded time while file work hangs', () => {
  let site: Site;
  let pipe: string;

  afterEach(() => site.clean());

  function makeSite(settings: SiteOptions['settings'] = {}): void {
    site = new Site({ queues: {}, settings: { master: { shutdownTimeout: 0.5 }, ...settings } });
    pipe = site.path('pipe');
    execFileSync('mkfifo', [pipe]);
  }

  async function startHanging(then?: 'main-thread' | 'defect'): Promise<RunningDaemon> {
    const throttler = { module, name: 'HangingThrottler', pipe, then };
    site.writeQueues({ Q: { maxWorkers: 1, nQueueLimitWorker: 1, throttler } });
    const daemon = site.start();
    await until('the threads hang', () => daemon.output().includes('the threads hang'));
    return daemon;
  }

  it('ends with status 0 when all is closed, though all threads hang in a named pipe', async () => {
    makeSite();
    const daemon = await startHanging();
    daemon.process.kill('SIGTERM');
    // By force it would end by SIGKILL.
    expect(await daemon.ended, daemon.output()).to.equal(0);
    expect(daemon.output()).to.match(/ stopped\n$/);
  });

  it('ends with status 0 though the log file waits for a thread', async () => {
    makeSite({ log: { file: 'thresher.log' } });
    const daemon = await startHanging();
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
  });

  it('ends with status 1 at once on a second signal', async () => {
    makeSite({ master: { shutdownTimeout: 1000 } });
    const daemon = await startHanging();
    daemon.process.kill('SIGTERM');
    await until('it stops', () => daemon.output().includes('stopping'));
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(1);
  });

  it('ends with status 1 after a defect, and says which', async () => {
    makeSite();
    const daemon = await startHanging('defect');
    expect(await daemon.ended, daemon.output()).to.equal(1);
    expect(daemon.output()).to.contain('thresher: a defect ends the daemon: Error: a planted defect\n');
  });

  it('ends by SIGKILL when its time is over and the main thread hangs, and says so', async () => {
    makeSite();
    const daemon = await startHanging('main-thread');
    // The clock runs before the daemon can hear of it.
    const before = performance.now();
    daemon.process.kill('SIGTERM');
    await daemon.ended;
    expect(performance.now() - before).to.be.at.least(byForce);
    expect(await daemon.ended, daemon.output()).to.equal('SIGKILL');
    expect(daemon.output()).to.contain('thresher: the stop did not come to its end; ending by force\n');
  });

  it('ends with status 0 once the start has given up a module that hangs', async () => {
    // The start takes its 10 s for the module first: by force it would end 30 s after the signal.
    makeSite({ master: { shutdownTimeout: 20 } });
    const loading = site.path('loading.ts');
    const code = "import { open } from 'node:fs/promises';\nprocess.stderr.write('the start hangs\\n');\n";
    writeFileSync(loading, `${code}await open(${JSON.stringify(pipe)});\n`);
    site.writeQueues({ Q: { throttler: { module: loading, name: 'Loading' } } });
    const daemon = site.start();
    await until('the start hangs', () => daemon.output().includes('the start hangs'));
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended, daemon.output()).to.equal(0);
    expect(daemon.output()).to.contain('its top level did not come to its end within 10 s');
    expect(daemon.output()).to.match(/ stopped\n$/);
  });
});
