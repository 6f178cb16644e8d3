import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { K8sSecretCredManager } from '../../../src/plugins/credentials/k8s-secret/index.ts';
import { K8sSecretManager } from '../../../src/plugins/credentials/k8s-secret/manager.ts';
import type { KubernetesClient } from '../../../src/clients/kubernetes/client.ts';
import { failureOf } from '../../../src/clients/kubernetes/errors.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { makeJwt } from '../../support/credentials.ts';
import { mistakes, renewed } from '../../support/credential-manager.ts';
import { kubeconfig, writeKubeconfig } from '../../support/kubernetes-client.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

describe('K8sSecretCredManager', () => {
  let configDir: string;
  let place: { readonly k8s_config_file: string };

  beforeEach(() => {
    configDir = temporaryDirectory();
    place = { k8s_config_file: writeKubeconfig(kubeconfig({ server: 'https://127.0.0.1:1' })) };
  });

  const found = (options: object) => mistakes(K8sSecretCredManager, options, { configDir });
  /** What is wrong where the options are in a file of their own, which is where Harvester has them. */
  const foundInFile = (text: string) => {
    writeFileSync(join(configDir, 'plan.json'), text);
    return found({ certFile: 'plan.json' });
  };
  const plan = (changes: object) =>
    foundInFile(JSON.stringify({ ...place, proxy_files: ['/a'], ...changes }));

  it('hole 3: shows no token that the API server repeats when it refuses the Secret', async () => {
    const token = makeJwt({ sub: 'pilot', exp: Math.floor(Date.now() / 1000) + 86_400 });
    const file = join(configDir, 'pilot.jwt');
    writeFileSync(file, token, { mode: 0o600 });
    const client = {
      get: async () => undefined,
      patch: async (path: string, applied: { readonly data: Readonly<Record<string, string>> }) => {
        const message = `admission webhook "policy" denied the request: data map[pilot.jwt:${applied.data['pilot.jwt'] ?? ''}]`;
        const asked = { server: 'https://k:6443', method: 'PATCH', path };
        throw failureOf(asked, 400, JSON.stringify({ kind: 'Status', reason: 'BadRequest', message }));
      },
    } as unknown as KubernetesClient;
    const manager = new K8sSecretManager({
      cluster: 'c',
      client,
      namespaces: ['n'],
      secret: 's',
      files: [file],
      fieldManager: 't',
      minLifetime: 1000,
      clock: systemClock,
    });
    const { signal } = new AbortController();
    const [outcome] = await manager.renew({ force: true }, signal);
    const message = outcome?.kind === 'failed' ? outcome.error.message : '';
    expect(message).to.contain('denied the request');
    expect(message).not.to.contain(Buffer.from(token).toString('base64').slice(0, 20));
  });

  it('pushes nothing that is over or not valid yet', async () => {
    const names = ['over', 'early'];
    const now = Math.floor(Date.now() / 1000);
    const texts = [{ exp: now }, { nbf: now + 600, exp: now + 6000 }].map((times) => makeJwt(times));
    const files = names.map((name) => join(configDir, name));
    for (const [at, file] of files.entries()) writeFileSync(file, texts[at] ?? '', { mode: 0o600 });
    const manager = new K8sSecretManager({
      cluster: 'c',
      client: { get: async () => undefined } as unknown as KubernetesClient,
      namespaces: ['n'],
      secret: 's',
      files,
      fieldManager: 't',
      minLifetime: 0,
      clock: systemClock,
    });
    const said = (await renewed(manager)).map((one) => one.replace(configDir, '').replace(/\d{4}-\S+/, 'T'));
    expect(said).to.deep.equal([
      'credential-unfit: /over ended at T it is not pushed',
      'credential-unfit: /early is not valid before T it is not pushed',
    ]);
  });

  it('finds nothing wrong with what is right, in either place', async () => {
    expect(await found({ ...place, proxy_files: ['/a', 'b'], k8s_namespace: ['x', 'y'] })).to.deep.equal([]);
    expect(await plan({ k8s_namespace: '', secret_name: 'other' })).to.deep.equal([]);
  });

  it('finds mistakes in its section', async () => {
    expect((await found(place))[0]).to.match(
      /proxy_files.*it is missing: name the files, or in certFile a JSON file/,
    );
    expect((await found({ ...place, certFile: 'plan.json', proxy_files: ['/a'] }))[0]).to.match(
      /proxy_files.*plan\.json says which files/,
    );
    expect((await found({ ...place, proxy_files: [] }))[0]).to.match(/proxy_files/);
    expect((await found({ ...place, proxy_files: ['/a'], secret_name: 'Not A Name' }))[0]).to.match(
      /secret_name/,
    );
  });

  it('finds them in the file that it names, with their line', async () => {
    expect((await found({ certFile: 'none.json' }))[0]).to.match(/none\.json.*cannot read the file/);
    expect((await foundInFile('{\n"proxy_files": [\n'))[0]).to.match(/plan\.json.*:\d+.*not valid JSON/s);
    expect((await foundInFile('[]'))[0]).to.match(/plan\.json.*the file/s);
    expect((await foundInFile('{}'))[0]).to.match(/plan\.json.*proxy_files/s);
    expect((await foundInFile('{\n"proxy_files":\n"/a"}'))[0]).to.match(/plan\.json:2.*proxy_files/s);
  });

  it('finds what no Secret can have', async () => {
    expect((await plan({ k8s_namespace: 'Pilots' }))[0]).to.match(/"Pilots" cannot be a namespace/);
    expect((await plan({ k8s_namespace: ['good', 'bad_one'] }))[0]).to.match(
      /"bad_one" cannot be a namespace/,
    );
    expect((await plan({ proxy_files: ['/a/proxy', '/b/proxy'] }))[0]).to.match(
      /two files have the name proxy/,
    );
    expect((await plan({ proxy_files: ['/a/my proxy'] }))[0]).to.match(
      /"my proxy" cannot be a key of a Secret/,
    );
    expect((await plan({ k8s_config_file: 'none' }))[0]).to.match(/kubeconfig .*none/);
  });
});
