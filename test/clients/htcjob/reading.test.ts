import { expect } from 'chai';
import { HtcJobReader } from '../../../src/clients/htcjob/reading.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { htcJob } from '../../support/htc-jobs.ts';
import { kubeconfig, writeKubeconfig } from '../../support/kubernetes-client.ts';
import { files } from '../../support/operator-files.ts';
import { json, startScriptedServer } from '../../support/scripted-server.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('a list of HTCJobs beside the daemon', () => {
  it('hole 8: keeps no script in memory, also not the copy of kubectl', async () => {
    const server = await startScriptedServer();
    const configDir = temporaryDirectory();
    const options = { k8s_config_file: writeKubeconfig(kubeconfig({ server: server.url }), configDir) };
    const reader = new HtcJobReader(options, { clock: systemClock, random: () => 0.5, files, configDir });
    try {
      const source = 'echo of a script';
      const job = htcJob({ script: { image: 'centos', command: 'sh', source } });
      const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(job) };
      const items = [{ ...job, metadata: { ...job.metadata, annotations } }];
      server.next(json(200, { metadata: { resourceVersion: '1' }, items }));
      const found = await reader.list(undefined, new AbortController().signal);
      expect(found.map(({ metadata }) => metadata.name)).to.deep.equal(['zero']);
      expect(JSON.stringify(found)).not.to.contain(source);
    } finally {
      await reader.close();
      await server.stop();
    }
  });

  it('leaves out an object that does not say which HTCJob it is, and shows one without a spec beside the others', async () => {
    const server = await startScriptedServer();
    const configDir = temporaryDirectory();
    const options = { k8s_config_file: writeKubeconfig(kubeconfig({ server: server.url }), configDir) };
    const reader = new HtcJobReader(options, { clock: systemClock, random: () => 0.5, files, configDir });
    try {
      const items = [{ ...htcJob(), metadata: null }, { ...htcJob({}, 'bare'), spec: null }, htcJob()];
      server.next(json(200, { metadata: { resourceVersion: '1' }, items }));
      const found = await reader.list(undefined, new AbortController().signal);
      expect(found.map(({ metadata }) => metadata.name)).to.deep.equal(['bare', 'zero']);
    } finally {
      await reader.close();
      await server.stop();
    }
  });

  it('has no nulls in a status, in a list of HTCJobs or of one', async () => {
    const server = await startScriptedServer();
    const configDir = temporaryDirectory();
    const options = { k8s_config_file: writeKubeconfig(kubeconfig({ server: server.url }), configDir) };
    const reader = new HtcJobReader(options, { clock: systemClock, random: () => 0.5, files, configDir });
    try {
      const { signal } = new AbortController();
      const status = { active: 1, completionTime: null, conditions: [null], returnCodes: null };
      const items = [
        { ...htcJob(), status },
        { ...htcJob({}, 'without'), status: null },
      ];
      server.next(json(200, { metadata: { resourceVersion: '1' }, items }), json(200, items[0]));
      const found = [...(await reader.list(undefined, signal)), await reader.one('default/zero', signal)];
      const counting = { active: 1, conditions: [] };
      expect(found.map((one) => one.status)).to.deep.equal([counting, undefined, counting]);
    } finally {
      await reader.close();
      await server.stop();
    }
  });
});
