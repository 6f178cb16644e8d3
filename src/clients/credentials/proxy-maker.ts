import { type Clock, isoTime } from '../../util/clock.ts';
import { whyUnusable } from '../../util/validity.ts';
import { ThresherError } from '../../worker/errors.ts';
import type { Reason } from '../../worker/reason.ts';
import { rememberCredential } from './credential.ts';
import { type FileState, inspectFile, isDue, outcomeOf, type RenewedFile } from './credential-file.ts';
import { fileVersion, readCredentialFile, readSecretFile, replaceBy } from './files.ts';
import { runTool } from './tool.ts';
import { readX509, type X509Credential } from './x509.ts';

/** A short-lived proxy that a program makes of a long-lived one. Times in ms. */
export interface ProxyPlan {
  /** Certificate or proxy, with or without its key: what the new one is made of. */
  readonly source: string;
  readonly path: string;
  /** "atlas" or "atlas:/atlas/Role=production" */
  readonly voms: readonly string[];
  readonly lifetime: number;
  /** It is renewed when less is left. */
  readonly renewBelow: number;
  /** A new one that has less is refused. */
  readonly minNewLifetime: number;
  readonly timeLimit: number;
  readonly command: string;
  /** Have it write the proxy to `temporary`. */
  args(temporary: string): readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

const hour = 3_600_000;

/** Keeps one proxy fresh: what the credential managers of Grid proxies share. */
export class ProxyMaker {
  readonly #plan: ProxyPlan;
  readonly #clock: Clock;

  constructor(plan: ProxyPlan, clock: Clock) {
    this.#plan = plan;
    this.#clock = clock;
  }

  async inspect(): Promise<FileState[]> {
    const state = await inspectFile(this.#plan.path);
    if (state.kind === 'broken') return [state];
    return [{ ...state, warnings: [...state.warnings, ...(await this.#sourceWarnings())] }];
  }

  /** Changes when an operator replaces the source, or another program the proxy. */
  async fingerprint(): Promise<string> {
    return `${await fileVersion(this.#plan.source)}, ${await fileVersion(this.#plan.path)}`;
  }

  /** Makes a new proxy if it is due, or with `force`. The last good one stays unless the new one is good. */
  async renew({ force }: { readonly force: boolean }, signal: AbortSignal): Promise<RenewedFile[]> {
    const { path } = this.#plan;
    const outcome = await outcomeOf(path, async () => {
      if (!force && !(await this.#isDue())) return 'unchanged';
      const source = await readSource(this.#plan, this.#clock);
      const { command, environment, timeLimit } = this.#plan;
      const make = async (temporary: string) => {
        const args = this.#plan.args(temporary);
        await runTool({ command, args, environment, timeLimit, clock: this.#clock, signal });
      };
      const current = await readProxy(path);
      const check = (bytes: Buffer) => {
        rememberCredential(bytes, path);
        const made = readX509(bytes.toString('utf8'), `what ${command} wrote`);
        checkNew(this.#plan, made, source, this.#clock);
        if (current !== undefined) checkBetter(this.#plan, made, current, this.#clock);
      };
      await replaceBy(path, this.#clock, make, check);
      return 'renewed';
    });
    return [outcome];
  }

  async #isDue(): Promise<boolean> {
    const { path, source, renewBelow, lifetime } = this.#plan;
    const state = await inspectFile(path);
    if (state.kind === 'broken' || state.facts.kind !== 'x509') return true;
    if (isDue(state.facts, { left: renewBelow, lifetime }, this.#clock.now())) return true;
    // An operator who replaced the long-lived proxy wants new ones made from it. A source with a time in the future
    // would be newer than any proxy made from it.
    const replaced = await modifiedAt(source);
    return replaced > (await modifiedAt(path)) && replaced <= this.#clock.now();
  }

  /** A source that ends before a whole lifetime makes shorter and shorter ones. */
  async #sourceWarnings(): Promise<Reason[]> {
    const { source, lifetime } = this.#plan;
    const state = await inspectFile(source);
    if (state.kind === 'broken') return [state.error];
    const { expiresAt = Infinity } = state.facts;
    if (expiresAt - this.#clock.now() >= lifetime) return [...state.warnings];
    const ends = expiresAt <= this.#clock.now() ? 'ended' : 'ends';
    const message = `${source} ${ends} at ${isoTime(expiresAt)}, before a proxy made of it now should (${lifetime / hour} h)`;
    return [...state.warnings, { code: 'credential-source-ending', message }];
  }
}

async function modifiedAt(path: string): Promise<number> {
  return (await readSecretFile(path).catch(() => undefined))?.modifiedAt ?? 0;
}

async function readSource({ source }: ProxyPlan, clock: Clock): Promise<X509Credential> {
  const { bytes } = await readCredentialFile(source);
  const found = readX509(bytes.toString('utf8'), source);
  const why = whyUnusable(found, clock.now());
  if (why !== undefined) {
    const message = `${source} ${why}: no proxy can be made of it`;
    throw new ThresherError('credential-unfit', message, { file: source });
  }
  return found;
}

/** @throws ThresherError `credential-unfit` if it is not what was asked for. */
function checkNew(plan: ProxyPlan, made: X509Credential, source: X509Credential, clock: Clock): void {
  const unfit = (what: string) =>
    new ThresherError('credential-unfit', `the new proxy for ${plan.path} ${what}`, { file: plan.path });
  const left = made.expiresAt - clock.now();
  if (made.kind === 'certificate') throw unfit('is no proxy, but a certificate');
  if (made.identity !== source.identity)
    throw unfit(`stands for ${made.identity}, and ${plan.source} for ${source.identity}`);
  for (const wanted of plan.voms) {
    if (!hasVo(made, wanted)) {
      const there = made.voms.flatMap(({ vo, fqans }) => [vo, ...fqans]).join(', ');
      throw unfit(`has no attributes of ${wanted}${there === '' ? '' : `, but of ${there}`}`);
    }
  }
  if (left < plan.minNewLifetime) {
    const ends = `${left <= 0 ? 'ended' : 'ends'} at ${isoTime(made.expiresAt)}`;
    throw unfit(`${ends}: it must last ${plan.minNewLifetime / hour} h at least`);
  }
  const why = whyUnusable(made, clock.now());
  if (why !== undefined) throw unfit(why);
}

/** The present file, if it can be read. */
async function readProxy(path: string): Promise<X509Credential | undefined> {
  try {
    return readX509((await readCredentialFile(path)).bytes.toString('utf8'), path);
  } catch {
    return undefined;
  }
}

/** @throws ThresherError `credential-unfit` if the one in place is as good and lasts longer. */
function checkBetter(plan: ProxyPlan, made: X509Credential, current: X509Credential, clock: Clock): void {
  if (whyUnusable(current, clock.now()) !== undefined) return;
  const isAsGood = current.identity === made.identity && plan.voms.every((wanted) => hasVo(current, wanted));
  if (!isAsGood || made.expiresAt >= current.expiresAt) return;
  const ends = `ends at ${isoTime(made.expiresAt)}, and the one in place at ${isoTime(current.expiresAt)}`;
  throw new ThresherError('credential-unfit', `the new proxy for ${plan.path} ${ends}`, { file: plan.path });
}

/** By the attribute that was asked for, whatever the server is called here; else by the name of the VO. */
function hasVo({ voms }: X509Credential, wanted: string): boolean {
  const [name, attribute] = wanted.split(/:(.*)/s);
  if (attribute?.startsWith('/') === true)
    return voms.some(({ fqans }) => fqans.map(plainFqan).includes(plainFqan(attribute)));
  return voms.some(({ vo }) => vo === name);
}

/** Older servers list roles and capabilities without a holder. */
function plainFqan(fqan: string): string {
  return fqan.replace(/\/Role=NULL|\/Capability=NULL/g, '');
}
