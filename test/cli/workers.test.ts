import { expect } from 'chai';
import { formatTable } from '../../src/cli/output.ts';
import { workerColumns } from '../../src/cli/workers.ts';
import { workerView } from '../../src/daemon/view.ts';
import { openStore } from '../../src/store/store.ts';
import { workerOf } from '../support/samples.ts';

describe('the table of workers', () => {
  it('has a column with the computing element of each worker', async () => {
    const store = await openStore(':memory:', 'factory');
    await store.workers.insert([workerOf(1), workerOf(2)], 'pending', 1, 'x');
    const sent = { from: 'pending', to: 'submitted', at: 2, source: 'x' } as const;
    await store.workers.apply([{ ...sent, workerId: 1, computingElement: 'ce.site.test:9619' }]);
    const views = (await store.workers.list({})).map(workerView);
    await store.close();
    const [head, second, first] = formatTable(workerColumns, views);
    const at = head?.indexOf('CE ') ?? -1;
    expect(at).to.be.greaterThan(0);
    expect(first?.slice(at)).to.match(/^ce\.site\.test:9619/);
    expect(second).not.to.contain('ce.site.test');
  });
});
