import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'chai';
import { clientOf } from '../../../src/clients/htcjob/client.ts';
import { HtcJobOptions } from '../../../src/clients/htcjob/options.ts';
import { defaultsOf } from '../../../src/util/schema-defaults.ts';
import { kubeconfig, rejection, writeKubeconfig } from '../../support/kubernetes-client.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { files } from '../../support/operator-files.ts';
import { json, startScriptedServer } from '../../support/scripted-server.ts';

describe('the cluster of HTCJobs', () => {
  it('hole 6: is the first that answered: none of another one shows that HTCJobs are gone', async () => {
    const [first, other] = await Promise.all([startScriptedServer(), startScriptedServer()]);
    const file = writeKubeconfig(kubeconfig({ server: first.url }));
    const configDir = dirname(file);
    const clock = new ManualClock();
    const options = { ...defaultsOf(HtcJobOptions)(), k8s_config_file: 'kubeconfig' };
    const userAgent = 'thresher/test';
    const client = clientOf(options, { clock, random: () => 0.5, files, configDir, userAgent });
    const { signal } = new AbortController();
    const get = async () => {
      const answer = client.get('/api/v1/namespaces/default', { signal });
      // Its turn: 200 requests per second.
      const [outcome] = await Promise.allSettled([answer, clock.advance(5)]);
      if (outcome.status === 'rejected') throw outcome.reason;
    };
    const name = (value: unknown) => {
      rmSync(file);
      writeKubeconfig(value, configDir);
      return clock.advance(11_000);
    };
    try {
      for (const server of [first, other]) server.always(json(200, { metadata: { name: 'default' } }));
      await get();
      await name(kubeconfig({ server: other.url }));
      const error = await rejection(get());
      expect(error).to.have.property('code', 'kubernetes-other-cluster');
      expect(String(error)).to.contain(`${first.url} at first and now names ${other.url}`);
      // Nor as long as it stays so.
      await clock.advance(11_000);
      expect(await rejection(get())).to.have.property('code', 'kubernetes-other-cluster');
      expect(other.requests).to.have.length(0);
      // Another login for the same one, once the file is back.
      await name(kubeconfig({ server: first.url, 'insecure-skip-tls-verify': true }, { token: 'new' }));
      await get();
      expect(first.requests).to.have.length(2);
    } finally {
      await Promise.all([client.close(), first.stop(), other.stop()]);
    }
  });

  it('is another one where the first never answered: its address was wrong', async () => {
    const server = await startScriptedServer();
    const gone = await startScriptedServer();
    await gone.stop();
    const file = writeKubeconfig(kubeconfig({ server: gone.url }));
    const configDir = dirname(file);
    const options = { ...defaultsOf(HtcJobOptions)(), k8s_config_file: 'kubeconfig' };
    const clock = new ManualClock();
    const client = clientOf(options, { clock, random: () => 0.5, files, configDir, userAgent: 'test' });
    const { signal } = new AbortController();
    const get = async () => {
      const answer = client.get('/api/v1/namespaces/default', { signal });
      const [outcome] = await Promise.allSettled([answer, clock.advance(5)]);
      return outcome.status;
    };
    try {
      server.always(json(200, { metadata: { name: 'default' } }));
      expect(await get()).to.equal('rejected');
      writeKubeconfig(kubeconfig({ server: server.url }, { token: 'a' }), configDir);
      await clock.advance(11_000);
      expect(await get()).to.equal('fulfilled');
    } finally {
      await Promise.all([client.close(), server.stop()]);
    }
  });
});
