import { harvesterIdOf } from '../../config/settings/machine.ts';
import { judgeOne, nameOf } from '../../agents/credentials/credential-board.ts';
import { allManagers, managersOf } from '../../config/queues/credential-managers.ts';
import { readQueueFile } from '../../config/queues/queues.ts';
import { sourceModulesOf } from '../../config/queues/sources.ts';
import type { LoadedSettings } from '../../config/settings/settings.ts';
import type { CredentialManager, CredentialState, Log, RenewOutcome } from '../../plugins/contracts/index.ts';
import { type Clock, isoTime } from '../../util/clock.ts';
import { withDeadline } from '../../util/deadline.ts';
import type { Problem } from '../../util/located.ts';
import { messageOf, ThresherError } from '../../worker/errors.ts';
import type { Readable } from '../configuration.ts';
import { namedManagers, patienceOf } from './credentials.ts';
import { readFactoryId } from '../factory-file.ts';
import { PluginFactory } from '../plugin-factory.ts';

export interface CredentialViewOptions {
  readonly settings: LoadedSettings;
  readonly queueFile: Readable;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** A credential as it is shown. */
export interface CredentialView {
  readonly name: string;
  readonly manager: string;
  readonly kind: string | null;
  readonly subject: string | null;
  readonly vo: string | null;
  readonly expires: string | null;
  /** Seconds. */
  readonly remaining: number | null;
  /** `good`; `soon`: it ends within `credmanager.warnLifetime`; `ending`: nothing is submitted with it; `bad`. */
  readonly state: 'good' | 'soon' | 'ending' | 'bad';
  readonly message: string | null;
}

interface Made {
  readonly name: string;
  readonly manager: CredentialManager;
  /** For one call, ms. */
  readonly patience: number;
}

/** The managers as the daemon has them, whether it runs or not. */
export async function makeManagers({
  settings,
  queueFile,
  clock,
  random,
  log,
}: CredentialViewOptions): Promise<Made[]> {
  const { file, catalogue, options, sources } = queueFile;
  const { queues } = await readQueueFile(file, catalogue, options);
  const { files } = options;
  const factoryId = readFactoryId(settings) ?? 'thresher';
  const harvesterId = harvesterIdOf(settings.values.master);
  const { stateDir } = settings;
  const shared = { factoryId, harvesterId, stateDir, maxStatusAge: 0, clock, files, random, log };
  const withServer = { ...sources, modules: sourceModulesOf(settings) };
  const plugins = new PluginFactory(catalogue, { ...shared, sources: withServer });
  const ofSettings = await managersOf(settings, catalogue, files, sources);
  const choices = allManagers(ofSettings.choices, queues, catalogue);
  return namedManagers(choices).map(({ name, choice }) => ({
    name,
    manager: plugins.credentialManager(choice),
    patience: patienceOf(choice, settings.values.master.pluginTimeout),
  }));
}

/** The problems that keep managers of the settings from being made, and values that may not be meant. */
export async function managerMistakes({
  settings,
  queueFile: { catalogue, options, sources },
}: CredentialViewOptions): Promise<readonly Problem[]> {
  return (await managersOf(settings, catalogue, options.files, sources)).problems;
}

/** All credentials, looked at afresh. */
export async function viewCredentials(options: CredentialViewOptions): Promise<CredentialView[]> {
  const views = await Promise.all(
    (await makeManagers(options)).map(async ({ name, manager, patience }): Promise<CredentialView[]> => {
      try {
        const states = await bounded(options, `inspection of ${name}`, patience, (signal) =>
          manager.inspect(signal),
        );
        return states.map((state) => toView(name, state, options));
      } catch (error) {
        const broken = {
          kind: 'broken',
          name,
          error: { code: 'plugin-failed', message: messageOf(error) },
        } as const;
        return [toView(name, broken, options)];
      }
    }),
  );
  return views.flat();
}

/** Renews the credential of this name now. @throws ThresherError `no-such-credential` */
export async function renewCredential(
  credential: string,
  options: CredentialViewOptions,
): Promise<readonly RenewOutcome[]> {
  for (const { name, manager, patience } of await makeManagers(options)) {
    const states = await bounded(options, `inspection of ${name}`, patience, (signal) =>
      manager.inspect(signal),
    );
    if (!states.some((state) => nameOf(state) === credential) && name !== credential) continue;
    const all = await bounded(options, `renewal of ${name}`, patience, (signal) =>
      manager.renew({ force: true }, signal),
    );
    const own = all.filter((outcome) => outcome.name === credential);
    return own.length > 0 ? own : all;
  }
  const message = `there is no credential or manager ${credential}; "thresher credentials" shows all`;
  throw new ThresherError('no-such-credential', message);
}

function bounded<T>(
  { clock, signal }: CredentialViewOptions,
  what: string,
  timeoutMs: number,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withDeadline({ clock, what, timeoutMs, signal }, call);
}

function toView(
  manager: string,
  state: CredentialState,
  { clock, settings }: CredentialViewOptions,
): CredentialView {
  const nothing = { kind: null, subject: null, vo: null, expires: null, remaining: null };
  if (state.kind === 'broken')
    return { name: state.name, manager, ...nothing, state: 'bad', message: state.error.message };
  const { name, kind, subject, vo = null, expiresAt } = state.facts;
  const now = clock.now();
  const remaining = expiresAt === undefined ? null : Math.round((expiresAt - now) / 1000);
  const expires = expiresAt === undefined ? null : isoTime(expiresAt);
  const { minLifetime, warnLifetime } = settings.values.credmanager;
  // The same judgement that closes queues.
  const known = { name, manager, state };
  const bad = judgeOne(known, 0, now);
  const ending = judgeOne(known, minLifetime * 1000, now);
  const soon = judgeOne(known, warnLifetime * 1000, now);
  const warning = state.warnings[0]?.message ?? null;
  return {
    name,
    manager,
    kind,
    subject,
    vo,
    expires,
    remaining,
    state: bad ? 'bad' : ending ? 'ending' : soon ? 'soon' : 'good',
    message: (bad ?? ending)?.message ?? warning,
  };
}
