import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { cricWords } from '../../src/config/cric/fields.ts';
import { temporaryDirectory } from './temporary.ts';

/** What no server gives as a secret: words of CRIC, and names that a factory may have. To hide one takes queues and workers away. */
export const ordinaryWords: readonly string[] = [
  ...cricWords,
  ...['CERN-PROD_UCORE_2', 'production.pull', 'thresher-abcd1234', 'kubernetes-secret-name'],
];

/** A certificate and its key, in files. */
export interface Issued {
  readonly name: string;
  readonly certificate: string;
  readonly key: string;
}

/** A certificate authority with its directory of trusted certificates, and the host of a VO's server. */
export interface Authority extends Issued {
  readonly directory: string;
  /** As tools want it in X509_CERT_DIR. */
  readonly trusted: string;
  readonly host: Issued;
}

export interface Wanted {
  /** "/DC=org/DC=test/CN=Jane Doe" */
  readonly name: string;
  /** ms UTC. Default: from an hour ago until in 30 days. */
  readonly from?: number;
  readonly until?: number;
  readonly key?: 'rsa' | 'ec';
  /** Lines of openssl's section of extensions. */
  readonly extensions?: readonly string[];
}

/** Of a proxy by RFC 3820. */
export const rfcProxy = ['proxyCertInfo=critical,language:id-ppl-inheritAll'];

const hour = 3_600_000;
let made = 0;

export function openssl(...args: readonly string[]): string {
  return execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

export function makeAuthority(): Authority {
  const directory = temporaryDirectory();
  const name = '/DC=org/DC=test/CN=Test CA';
  const certificate = join(directory, 'ca.pem');
  const key = join(directory, 'ca.key');
  const options = ['-days', '60', '-subj', name, '-keyout', key, '-out', certificate];
  openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...options);
  const trusted = join(directory, 'trusted');
  mkdirSync(trusted);
  const hash = openssl('x509', '-in', certificate, '-noout', '-hash').trim();
  copyFileSync(certificate, join(trusted, `${hash}.0`));
  writeFileSync(join(directory, 'index.txt'), '');
  const ca = { name, certificate, key, directory, trusted };
  const host = issue(directory, ca, { name: '/DC=org/DC=test/CN=voms.example.org' });
  return { ...ca, host };
}

/** Has `issuer` sign a certificate; a proxy if its name and extensions say so. */
export function issue(directory: string, issuer: Issued, wanted: Wanted): Issued {
  const at = (what: string) => join(directory, `${what}${made}`);
  made++;
  const [key, request, certificate, config] = [at('key'), at('request'), at('certificate'), at('config')];
  const algorithm = wanted.key === 'ec' ? ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] : ['rsa:2048'];
  openssl('req', '-newkey', ...algorithm, '-nodes', '-keyout', key, '-subj', wanted.name, '-out', request);
  const lines = [
    ...['[ca]', 'default_ca=own', '[own]', `database=${join(directory, 'index.txt')}`],
    ...[`new_certs_dir=${directory}`, 'rand_serial=yes', 'default_md=sha256', 'policy=any'],
    ...[
      'unique_subject=no',
      '[any]',
      '[extensions]',
      ...(wanted.extensions ?? ['keyUsage=digitalSignature']),
    ],
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const time = (ms: number) => new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
  const dates = [
    ...['-startdate', time(wanted.from ?? Date.now() - hour)],
    ...['-enddate', time(wanted.until ?? Date.now() + 720 * hour)],
  ];
  const signer = ['-cert', issuer.certificate, '-keyfile', issuer.key];
  const how = ['-batch', '-notext', '-preserveDN', '-config', config, '-extensions', 'extensions'];
  openssl('ca', ...how, ...signer, ...dates, '-in', request, '-out', certificate);
  return { name: wanted.name, certificate, key };
}

/** What a proxy file holds: the first's certificate and key, then the certificates of the others. */
export function proxyText(leaf: Issued, ...chain: readonly Issued[]): string {
  return [leaf.certificate, leaf.key, ...chain.map(({ certificate }) => certificate)]
    .map((path) => readFileSync(path, 'utf8'))
    .join('');
}

/** A proxy of somebody, with a CA of its own, good for a month. */
export function proxyOf(name: string): string {
  const ca = makeAuthority();
  const user = issue(ca.directory, ca, { name });
  return proxyText(issue(ca.directory, user, { name: `${name}/CN=1`, extensions: rfcProxy }), user);
}

/** A proxy of this user that a real tool makes; @returns its path. */
export function makeProxy(ca: Authority, user: Issued, tool: string, ...options: readonly string[]): string {
  const path = join(ca.directory, `proxy${made++}`);
  const names = ['-cert', user.certificate, '-key', user.key, '-out', path];
  execFileSync(tool, [...names, ...options], { env: toolEnvironment(ca), stdio: 'pipe' });
  return path;
}

/** One that has an attribute certificate of a VO, as its server would give it. */
export function makeVomsProxy(
  ca: Authority,
  user: Issued,
  vo: string,
  ...options: readonly string[]
): string {
  const host = ['-hostcert', ca.host.certificate, '-hostkey', ca.host.key, '-uri', `${vo}.example.org:15001`];
  return makeProxy(ca, user, 'voms-proxy-fake', '-rfc', '-voms', vo, ...host, ...options);
}

/** An extension for openssl with the attribute certificates of several VOs. */
export function vomsExtension(ca: Authority, user: Issued, vos: readonly string[]): string {
  const certificates = vos.map((vo) => {
    const separate = join(ca.directory, `ac${made++}`);
    makeVomsProxy(ca, user, vo, '-fqan', `/${vo}/Role=pilot`, '-separate', separate);
    const pem = readFileSync(separate, 'utf8').replace(/-----.*-----|\s/g, '');
    return Buffer.from(pem, 'base64');
  });
  const der = sequence(sequence(Buffer.concat(certificates)));
  return `1.3.6.1.4.1.8005.100.100.5=DER:${der.toString('hex')}`;
}

function sequence(content: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([Buffer.from([0x30, 0x84]), length, content]);
}

/** Nothing of this machine's own Grid configuration. */
export function toolEnvironment(ca: Authority): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: ca.directory, X509_CERT_DIR: ca.trusted };
}

/** Times that an issuer may write into a token, right or wrong, most of them about `now`, seconds. */
export function anyTimes(now: number): fc.Arbitrary<Readonly<Record<'nbf' | 'iat' | 'exp', unknown>>> {
  const about = fc.integer({ min: -1000, max: 1000 }).map((by) => now + by);
  const far = fc.constantFrom(undefined, null, 0, 1, now * 1000, now + 3e8, 9_999_999_999);
  const time = fc.oneof(about, far);
  return fc.record({ nbf: time, iat: time, exp: fc.oneof(time, fc.constant(now + 21_600)) });
}

/** A token as HTCondor and token issuers make them. */
export function makeJwt(claims: Readonly<Record<string, unknown>>, key = 'the key of the pool'): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}
