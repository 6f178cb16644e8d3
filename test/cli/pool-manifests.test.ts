import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { runHere } from '../support/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';

const manifests = (...args: string[]) => runHere('pool', 'manifests', ...args);

/** Wrong words, and what their sentence must say. */
const wrongForms: readonly (readonly [args: readonly string[], says: RegExp])[] = [
  [['--workers', '-1'], /--workers is "-1"; it must be a whole number from 0 to 99999 \[pool-option\]/],
  [['--workers', 'two'], /--workers is "two"/],
  [['--image', ''], /--image is ""; it must be NAME:TAG or NAME@sha256:DIGEST/],
  [['--image', 'x@sha256:12'], /--image is "x@sha256:12"/],
  [['--image', ':latest'], /--image is ":latest"/],
  [['--spool-size', '10 Gi'], /--spool-size is "10 Gi"; it must be a size such as 10Gi/],
  [['--spool-size', '-1Gi'], /--spool-size is "-1Gi"/],
  [['--worker-memory', '1m'], /--worker-memory is "1m"; it must be a size from 64Mi on/],
  [['--worker-cpus', '0'], /--worker-cpus is "0"; it must be a number of cores/],
  [['--storage-class', 'Fast SSD'], /--storage-class is "Fast SSD"; it must be the name of a StorageClass/],
  [['--name', '1pool'], /--name is "1pool"; it must be at most 47 small letters/],
  [['--name', 'a'.repeat(48)], /--name is "a+"/],
  [['--namespace', 'My_Space'], /--namespace is "My_Space"; it must be at most 63 small letters/],
  [['--trust-domain', 'a b'], /--trust-domain is "a b"; it must be a name such as pool\.example\.org/],
  [['--clients', '192.0.2.1'], /--clients is "192\.0\.2\.1"; it must be a network such as 192\.0\.2\.0\/24/],
  [['--clients', '192.0.2.0/33'], /--clients is "192\.0\.2\.0\/33"/],
  [['--worker-egress', 'everywhere'], /--worker-egress is "everywhere"/],
];

/** Words that do not go together, or are none: exit status 2. */
const wrongUse: readonly (readonly [args: readonly string[], says: RegExp])[] = [
  [['--security', 'none'], /Allowed choices are tokens, password/],
  [['--worker-template', '--apply'], /--worker-template is a file for thresher/],
  [['--wrokers', '2'], /unknown option '--wrokers'.*--workers/],
  [['extra'], /too many arguments/],
];

describe('thresher pool manifests', () => {
  for (const [args, says] of wrongForms)
    it(`refuses ${args.join(' ')}`, async () => {
      const { status, stdout, stderr } = await manifests(...args);
      expect([status, stdout]).to.deep.equal([1, '']);
      expect(stderr).to.match(says);
    });

  for (const [args, says] of wrongUse)
    it(`knows no ${args.join(' ')}`, async () => {
      const { status, stderr } = await manifests(...args);
      expect(status).to.equal(2);
      expect(stderr).to.match(says);
    });

  it('refuses wrong words before it asks a server, and names a kubeconfig that is not there', async () => {
    const nowhere = join(temporaryDirectory(), 'kubeconfig');
    const place = ['--apply', '--kubeconfig', nowhere];
    expect((await manifests(...place, '--workers', 'x')).stderr).to.match(/--workers is "x"/);
    const { status, stderr } = await manifests(...place);
    expect(status).to.equal(1);
    expect(stderr).to.include(nowhere).and.to.include('[kubeconfig-missing]');
  });

  it('says so where no server answers, and that nothing is changed', async () => {
    const kubeconfig = join(temporaryDirectory(), 'kubeconfig');
    const cluster = { name: 'c', cluster: { server: 'http://127.0.0.1:1' } };
    const context = { name: 'x', context: { cluster: 'c', user: 'u' } };
    const config = { clusters: [cluster], contexts: [context], users: [{ name: 'u', user: {} }] };
    writeFileSync(kubeconfig, JSON.stringify({ ...config, 'current-context': 'x' }));
    const { status, stderr } = await manifests('--apply', '--kubeconfig', kubeconfig);
    expect(status).to.equal(1);
    expect(stderr).to.match(/127\.0\.0\.1:1/);
  });

  it('prints objects that refer to Secrets, and no Secret', async () => {
    const { stdout } = await manifests();
    const kinds = parseAllDocuments(stdout).map((document) => String(document.get('kind')));
    expect(kinds).to.include('StatefulSet').and.not.to.include('Secret');
    expect(stdout).to.include('secretName: htcondor-worker-token');
  });

  it('names the namespace only where it is given', async () => {
    expect((await manifests()).stdout).not.to.include('namespace:');
    const { stdout } = await manifests('--namespace', 'here');
    const spaces = parseAllDocuments(stdout).map((document) => document.getIn(['metadata', 'namespace']));
    expect(new Set(spaces)).to.deep.equal(new Set(['here']));
  });

  it('gives the workers of a demand no Secret: their jobs could read a token that outlives them', async () => {
    const { stdout } = await manifests('--worker-template');
    expect(stdout).not.to.match(/secret/i);
  });

  it('prints the template of workers with the names and the image of the pool', async () => {
    const { stdout } = await manifests('--worker-template', '--name', 'other', '--image', 'a/b:1');
    expect(stdout)
      .to.include('image: a/b:1')
      .and.to.include('serviceAccountName: other-worker')
      .and.to.include('value: other-central-manager')
      .and.to.include('$nCore');
  });
});
