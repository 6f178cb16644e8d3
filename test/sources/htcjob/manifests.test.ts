import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { crd } from '../../../src/clients/htcjob/crd.ts';
import { deployment, rights, settings } from '../../../src/clients/htcjob/manifests.ts';
import { KerberosCredManager } from '../../../src/plugins/credentials/kerberos/index.ts';
import { runHere } from '../../support/command-line.ts';
import { mistakes } from '../../support/credential-manager.ts';

const directory = join(import.meta.dirname, '../../../templates/kubernetes/htcjob');
const files = {
  'crd.yaml': [crd()],
  'rbac.yaml': rights(),
  'settings.yaml': settings(),
  'deployment.yaml': deployment(),
};

/** Written anew with UPDATE_TEMPLATES=1. */
function textOf(documents: readonly object[]): string {
  return documents
    .map((document) => stringify(document, { aliasDuplicateObjects: false, singleQuote: true }))
    .join('---\n');
}

describe('the manifests of the operator of HTCJobs', () => {
  for (const [name, documents] of Object.entries(files))
    it(`lie in templates/kubernetes/htcjob/${name} as thresher prints them`, () => {
      const file = join(directory, name);
      if (process.env['UPDATE_TEMPLATES']) writeFileSync(file, textOf(documents));
      expect(readFileSync(file, 'utf8')).to.equal(textOf(documents));
    });

  for (const [command, documents] of [
    ['crd', [crd()]],
    ['rbac', rights()],
    ['manifests', [...settings(), crd(), ...rights(), ...deployment()]],
  ] as const)
    it(`are printed by thresher htcjob ${command}, without settings and a daemon`, async () => {
      const { status, stdout, stderr } = await runHere('htcjob', command);
      expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' });
      expect(parseAllDocuments(stdout).map((document) => document.toJS() as object)).to.deep.equal(documents);
    });

  it('B9: have a credential manager that reads the Secrets which the Deployment mounts, once its # are gone', async () => {
    const [, map] = settings() as readonly { readonly data?: Readonly<Record<string, string>> }[];
    const text = (map?.data?.['thresher.yaml'] ?? '').replaceAll(/^# (?!With)/gm, '');
    const { credmanager } = parse(text) as {
      credmanager: { pluginConfigs: { module: string; name: string; configs: Record<string, object> }[] };
    };
    const [manager] = credmanager.pluginConfigs;
    const { module, name, configs = {} } = manager ?? {};
    expect({ module, name }).to.deep.equal({
      module: KerberosCredManager.module,
      name: KerberosCredManager.name,
    });
    expect(await mistakes(KerberosCredManager, configs['kerberos'])).to.deep.equal([]);
    const { secretDirectory = '', ccache = '' } = configs['kerberos'] as Record<string, string>;
    const pod = JSON.stringify(deployment());
    expect(pod).to.contain(`"mountPath":"${secretDirectory}"`).and.to.contain(`"value":"FILE:${ccache}"`);
    for (const secret of ['kerberos-keytab-secret', 'kinit-secret'])
      expect(pod).to.contain(`"secret":{"name":"${secret}","optional":true}`);
  });

  it('give the operator no right to read Secrets of the whole cluster, to create HTCJobs or to replace them whole', () => {
    const bound = rights().filter(({ kind }) => kind === 'ClusterRoleBinding');
    expect(bound.map(({ roleRef }) => (roleRef as { readonly name: string }).name)).to.deep.equal([
      'thresher-htcjob',
    ]);
    const role = rights().find(({ kind, metadata }) => {
      return kind === 'ClusterRole' && (metadata as { name: string }).name === 'thresher-htcjob';
    }) as {
      readonly rules: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
    };
    expect(role.rules.map(({ resources, verbs }) => [resources, verbs])).to.deep.equal([
      [['htcjobs'], ['get', 'list', 'watch', 'patch', 'delete']],
      [['htcjobs/status'], ['patch']],
      [['events'], ['create', 'list']],
    ]);
  });
});
