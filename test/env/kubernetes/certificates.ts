import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Failure } from '../failure.ts';

const run = promisify(execFile);

const names = [
  'IP:127.0.0.1',
  'IP:10.96.0.1',
  'DNS:localhost',
  'DNS:kubernetes',
  'DNS:kubernetes.default',
  'DNS:kubernetes.default.svc',
];

/** An authority of its own, with what the API server and an administrator need of it, in `directory`. */
export async function makeCertificates(directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const openssl = async (...args: string[]) => {
    try {
      await run('openssl', args, { cwd: directory });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (why.includes('ENOENT')) throw new Failure('openssl is missing; on Debian: apt-get install openssl');
      throw new Failure(why);
    }
  };
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const days = ['-days', '3650'];
  const authority = ['-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=thresher-test-ca'];
  await openssl('req', '-x509', ...newKey, ...authority, ...days);
  const usages = `subjectAltName=${names.join(',')}\nextendedKeyUsage=serverAuth,clientAuth\n`;
  writeFileSync(join(directory, 'usages'), usages);
  const sign = async (name: string, subject: string, serial: string) => {
    const request = `${name}.csr`;
    await openssl('req', ...newKey, '-keyout', `${name}.key`, '-out', request, '-subj', subject);
    const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-set_serial', serial, '-extfile', 'usages'];
    await openssl('x509', '-req', '-in', request, ...signer, ...days, '-out', `${name}.crt`);
  };
  const serviceAccounts = async () => {
    await openssl('genrsa', '-out', 'sa.key', '2048');
    await openssl('rsa', '-in', 'sa.key', '-pubout', '-out', 'sa.pub');
  };
  await Promise.all([
    sign('apiserver', '/CN=kube-apiserver', '2'),
    sign('admin', '/O=system:masters/CN=admin', '3'),
    serviceAccounts(),
  ]);
}
