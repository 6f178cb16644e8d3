import { expect } from 'chai';
import { onPostgresql } from '../support/postgresql.ts';
import { countStarts, Site } from '../support/site.ts';
import {
  expectPayloads,
  expectToys,
  showPayload,
  toyQueue,
  toySettings,
  toySteps,
  wantedToys,
} from '../support/toy-site.ts';

describe('a source of a third party that names three workers', () => {
  let site: Site;

  afterEach(() => site.clean());

  for (const [description, step] of toySteps) {
    const others = step.startsWith('news:') ? ['one of PostgreSQL'] : [];
    for (const database of ['kept', 'removed', ...others]) {
      it(`gets each once, and hears of it, through SIGKILL ${description}, the database ${database}`, async () => {
        const pilot = `${countStarts} ${showPayload('$SITE_DIR')} exec sleep 1000`;
        const where = database === 'one of PostgreSQL' ? await onPostgresql() : {};
        site = new Site({ pilot, queues: { Q: toyQueue }, settings: { ...toySettings, ...where } });
        const crashed = site.startCrashingAt(step);
        expect(await crashed.ended, crashed.output()).to.equal('SIGKILL');
        if (database === 'removed') site.removeDatabase();

        const restarted = site.start();
        const ids = await expectToys(site, restarted, database === 'removed' ? 'removed' : 'kept');
        await expectPayloads(site.directory);
        // Each living row has exactly one process, and each process its row: none twice, none forgotten.
        expect([...site.liveShims().keys()].sort()).to.deep.equal(ids);
        expect((await site.workers()).length, 'a worker beside the three').to.equal(wantedToys);
        for (const [id, times] of site.starts()) expect(times, `starts of ${id}`).to.equal(1);

        restarted.process.kill('SIGTERM');
        expect(await restarted.ended, restarted.output()).to.equal(0);
      });
    }
  }
});
