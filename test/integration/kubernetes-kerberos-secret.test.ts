/** The Secret of the operator as the kubelet of a real node mounts it for the Deployment. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { deployment } from '../../src/clients/htcjob/manifests.ts';
import { KerberosCredManager } from '../../src/plugins/credentials/kerberos/index.ts';
import { user } from '../env/kerberos/kdc.ts';
import { facts, makeManager, renewed, warnings } from '../support/credential-manager.ts';
import { ownKdc } from '../support/kdc.ts';
import { realNode } from '../support/kubernetes.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';

interface PodSpec {
  readonly securityContext: object;
  readonly volumes: readonly { readonly name: string }[];
}

const base64 = (bytes: Buffer | string) => Buffer.from(bytes).toString('base64');

/** The process that `sleep` is, somewhere below the node. */
function processOf(seconds: string): number | undefined {
  const sought = `sleep\0${seconds}\0`;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8') === sought) return Number(pid);
    } catch {
      // It has ended meanwhile.
    }
  return undefined;
}

describe('B9: the Secret of the operator on a real node', function () {
  this.timeout(300_000);

  it('is mounted though the other form is missing, and gives a ticket without a warning', async () => {
    const plane = await realNode();
    await using space = await plane.namespace('kerberos');
    const kdc = await ownKdc();
    try {
      const secret = (name: string, data: object) => ({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name },
        data,
      });
      const found = deployment().find(({ kind }) => kind === 'Deployment') as unknown as {
        readonly spec: { readonly template: { readonly spec: PodSpec } };
      };
      const { securityContext, volumes } = found.spec.template.spec;
      const volume = volumes.find(({ name }) => name === 'kerberos');
      await space.client.create(
        space.core('secrets'),
        secret('kerberos-keytab-secret', {
          user: base64(user.principal),
          keytab: base64(readFileSync(kdc.keytab)),
        }),
      );
      // A number that no other process sleeps.
      const seconds = `${1_000_000_000 + Math.floor(Math.random() * 1_000_000_000)}`;
      const container = {
        name: 'c',
        image: 'busybox:latest',
        imagePullPolicy: 'Never',
        command: ['sleep', seconds],
        volumeMounts: [{ name: 'kerberos', mountPath: '/etc/thresher-kerberos', readOnly: true }],
      };
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'operator' },
        spec: {
          securityContext,
          containers: [container],
          volumes: [volume],
          terminationGracePeriodSeconds: 0,
        },
      };
      await space.client.create(space.core('pods'), pod);
      const pid = await until('its container runs', () => processOf(seconds), 120_000);
      const secretDirectory = `/proc/${pid}/root/etc/thresher-kerberos`;
      expect(readdirSync(secretDirectory))
        .to.include.members(['user', 'keytab'])
        .and.not.to.include('username');
      process.env['KRB5_CONFIG'] = kdc.config;
      const options = { ccache: 'krb5cc', secretDirectory };
      const manager = makeManager(KerberosCredManager, options, { configDir: temporaryDirectory() });
      expect(await renewed(manager)).to.deep.equal(['renewed']);
      expect(await facts(manager)).to.include({ subject: user.principal });
      expect(await warnings(manager)).to.deep.equal([]);
    } finally {
      delete process.env['KRB5_CONFIG'];
      await kdc.stop();
    }
  });
});
