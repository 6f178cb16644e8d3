import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { expect } from 'chai';
import type { WorkerView } from '../../src/daemon/view.ts';
import { program } from '../support/program.ts';
import { Site } from '../support/site.ts';
import { until } from '../support/until.ts';

const template = resolve(import.meta.dirname, '../fixtures/harvester/panda_harvester.cfg');

/** The template as a site would fill it in, and what thresher needs beside. */
function filledIn(site: Site): string {
  return readFileSync(template, 'utf8')
    .replace('harvester_id = FIXME', 'harvester_id = $HARVESTER_ID\nstateDir = state')
    .replace('FIXME_1', 'WANTED')
    .replace('FIXME_2', 'ALSO_WANTED')
    .concat('\n[http]\nenabled = False\n[log]\nformat = json\n')
    .replace('configFile = panda_queueconfig.json', `configFile = ${site.path('queues.json')}`);
}

describe("Harvester's own settings file", () => {
  let site: Site;

  beforeEach(() => {
    // The template's server has no login, and its file of CRIC was never fetched: these queues depend on neither.
    const queue = { demand: 'fill', maxWorkers: 1, nQueueLimitWorker: 1 };
    site = new Site({
      queues: { WANTED: queue, ALSO_WANTED: queue, OTHER: queue },
      pilot: 'echo "$HARVESTER_ID" > "$SITE_DIR/id"; exec sleep 1000',
    });
    renameSync(site.queueFile, site.path('queues.json'));
  });

  afterEach(async () => {
    await site.clean();
  });

  it('runs a daemon, and the log tells what of it is not read', async () => {
    const config = site.path('panda_harvester.cfg');
    writeFileSync(config, filledIn(site));
    const env = { HARVESTER_ID: 'CERN_central_1' };
    const daemon = site.startWith(['--config', config, 'run', '--for', '60s'], env);
    const started = await until('the wanted queues have workers', async () => {
      const workers = await site.workers().catch((): WorkerView[] => []);
      return workers.length === 2 && existsSync(site.path('id')) && workers;
    });
    expect(started.map(({ queueName }) => queueName)).to.have.members(['WANTED', 'ALSO_WANTED']);
    await until('a pilot knows its harvester', () => {
      return readFileSync(site.path('id'), 'utf8') === 'CERN_central_1\n';
    });
    daemon.process.kill('SIGTERM');
    expect(await daemon.ended).to.equal(0);
    const notices = daemon
      .output()
      .split('\n')
      .filter((line) => line.includes('"configuration notice"'));
    expect(notices.some((line) => line.includes('thresher reads nothing of [db]: its 13 keys'))).to.equal(
      true,
    );
    // What its template leaves to fill in is no credential manager yet.
    expect(daemon.output()).to.contain('still to fill in').and.to.contain('template-placeholder');
    expect(daemon.output()).not.to.contain('credential not renewed');
  });

  it('is refused for its placeholders, one line each', () => {
    const result = spawnSync(program(), ['--config', template, 'run', '--for', '1s'], { encoding: 'utf8' });
    const shown = relative(process.cwd(), template);
    const right =
      "a placeholder of Harvester's template; write the value of your site [template-placeholder]";
    expect(result.stderr.trimEnd().split('\n')).to.deep.equal([
      `thresher: ${shown}:18 /master/harvester_id: error: harvester_id is "FIXME", ${right}`,
      `thresher: ${shown}:195 /qconf/queueList/0: error: queueList[0] is "FIXME_1", ${right}`,
      `thresher: ${shown}:196 /qconf/queueList/1: error: queueList[1] is "FIXME_2", ${right}`,
    ]);
    expect(result.status).to.equal(1);
  });

  it('is found where Harvester looks, and a line says which it is', () => {
    const home = site.path('panda');
    const env = { ...process.env, HOME: site.path('nobody'), PANDA_HOME: home, HARVESTER_ID: 'A' };
    const run = () => spawnSync(program(), ['queues', '--output', 'json'], { encoding: 'utf8', env });
    expect(run().stderr).to.match(
      /^thresher: there is no settings file; looked for \/etc\/.* \[settings-missing\]\n$/,
    );
    mkdirSync(join(home, 'etc/panda'), { recursive: true });
    const config = join(home, 'etc/panda/panda_harvester.cfg');
    writeFileSync(config, filledIn(site));
    const { stderr } = run();
    expect(stderr).to.contain(
      `thresher: the settings are those of ${config}: there is no /etc/thresher/thresher.yaml\n`,
    );
    // It goes on with it: as far as a state directory without a daemon.
    expect(stderr).to.contain(join(home, 'etc/panda/state')).and.to.contain('[store-missing]');
  });
});
