import { realpath, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  exposure,
  fileVersion,
  onSecretFile,
  readSecretFile,
  type SecretFile,
} from '../../../clients/credentials/files.ts';
import { rememberSecret } from '../../../util/own-secrets.ts';
import { messageOf, ThresherError } from '../../../worker/errors.ts';
import type { Reason } from '../../../worker/reason.ts';
import type { KerberosConfig } from './schema.ts';

/** The means to get a ticket. */
export interface Login {
  readonly principal: string;
  readonly by: { readonly keytab: string } | { readonly password: string };
}

/** The place where the means lie. They may change at any time. */
export interface LoginSource {
  /** @throws ThresherError `credential-missing`, `credential-wrong`; no secret is in the message */
  read(): Promise<Login>;
  /** The faults of its files that a ticket can do without for now. */
  flaws(): Promise<readonly Reason[]>;
  /** Another text after each change. Reads no content. */
  version(): Promise<string>;
}

/** @param config whose check has found no mistake */
export function loginSource(config: KerberosConfig, configDir: string): LoginSource {
  const { secretDirectory, principal = '', keytab, passwordFile = '' } = config;
  if (secretDirectory !== undefined) return new SecretLogin(resolve(configDir, secretDirectory));
  return new FileLogin(principal, resolve(configDir, keytab ?? passwordFile), keytab !== undefined);
}

/** A keytab, or a file with a password, for a principal that the options name. */
class FileLogin implements LoginSource {
  readonly #principal: string;
  readonly #path: string;
  readonly #isKeytab: boolean;

  constructor(principal: string, path: string, isKeytab: boolean) {
    this.#principal = principal;
    this.#path = path;
    this.#isKeytab = isKeytab;
  }

  async read(): Promise<Login> {
    const file = await readSecretFile(this.#path);
    const by = this.#isKeytab ? { keytab: this.#path } : { password: passwordIn(file, this.#path) };
    return { principal: this.#principal, by };
  }

  async flaws(): Promise<readonly Reason[]> {
    const file = await readSecretFile(this.#path).catch(() => undefined);
    const exposed = file && exposure(this.#path, file, process.geteuid?.());
    return exposed === undefined ? [] : [exposed];
  }

  version(): Promise<string> {
    return fileVersion(this.#path);
  }
}

interface Form {
  readonly user: string;
  readonly secret: string;
  /** The name that htc-operator gave a Secret of this form. */
  readonly example: string;
}

const forms = {
  keytab: { user: 'user', secret: 'keytab', example: 'kerberos-keytab-secret' },
  password: { user: 'username', secret: 'password', example: 'kinit-secret' },
} as const satisfies Record<string, Form>;

const bothForms = Object.values(forms)
  .map(({ user, secret }) => `${user} and ${secret}`)
  .join(', or ');

/**
 * A directory with the keys of a Secret as files, in either form of htc-operator. The kubelet replaces all of them at once: it lets
 * the link `..data` point to another directory.
 */
class SecretLogin implements LoginSource {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async read(): Promise<Login> {
    const { form, place } = await this.#find();
    const principal = userIn(await readSecretFile(join(place, form.user)), join(this.#directory, form.user));
    const path = join(place, form.secret);
    const shown = join(this.#directory, form.secret);
    const file = await readSecretFile(path);
    if (form !== forms.keytab) return { principal, by: { password: passwordIn(file, shown) } };
    if (file.bytes.length > 0) return { principal, by: { keytab: path } };
    throw wrong(shown, 'is empty: it must be a keytab');
  }

  async flaws(): Promise<readonly Reason[]> {
    try {
      await this.read();
      const { form, place } = await this.#find();
      const path = join(place, form.secret);
      const { mode, owner } = await readSecretFile(path);
      // The fsGroup of a Pod lets its own group read the files of the kubelet.
      const counted = (mode & 0o007) === 0 ? mode & 0o700 : mode;
      const exposed = exposure(path, { mode: counted, owner }, process.geteuid?.());
      return exposed === undefined ? [] : [exposed];
    } catch (error) {
      if (!(error instanceof ThresherError)) throw error;
      return [{ code: error.code, message: messageOf(error) }];
    }
  }

  async version(): Promise<string> {
    const names = Object.values(forms).flatMap(({ user, secret }) => [user, secret]);
    const versions = await Promise.all(names.map((name) => fileVersion(join(this.#directory, name))));
    return versions.join(', ');
  }

  /** One state of the directory: user and key of the same Secret, also while the kubelet replaces it. */
  async #find(): Promise<{ readonly form: Form; readonly place: string }> {
    const directory = this.#directory;
    const { place, found } = await onSecretFile(directory, 'a look at', () => keysIn(directory));
    const touched = found.filter(({ user, secret }) => user || secret);
    const [first, second] = touched;
    if (first === undefined)
      throw missing(
        directory,
        `has no login: a Secret with the keys ${bothForms} must be there, and be mounted`,
      );
    if (second !== undefined)
      throw wrong(directory, `has keys of both forms: it must have ${bothForms}, and not both`);
    const { form, user, secret } = first;
    const lacks = user ? (secret ? undefined : form.secret) : form.user;
    if (lacks === undefined) return { form, place };
    throw missing(
      directory,
      `has no ${lacks}: a Secret such as ${form.example} has the keys ${form.user} and ${form.secret}`,
    );
  }
}

async function keysIn(directory: string) {
  const place = await realpath(join(directory, '..data')).catch(() => directory);
  const has = async (name: string) => (await stat(join(place, name)).catch(() => undefined)) !== undefined;
  const found: { readonly form: Form; readonly user: boolean; readonly secret: boolean }[] = [];
  for (const form of Object.values(forms))
    found.push({ form, user: await has(form.user), secret: await has(form.secret) });
  return { place, found };
}

function passwordIn({ bytes }: SecretFile, path: string): string {
  const [password = ''] = bytes.toString('utf8').split(/\r?\n/);
  rememberSecret(password, path);
  if (password !== '') return password;
  throw wrong(path, 'has no password in its first line');
}

function userIn({ bytes }: SecretFile, path: string): string {
  const user = bytes.toString('utf8').trim();
  if (/^[^-\s]\S*$/.test(user)) return user;
  // Another key may have got here by mistake: its content is not shown.
  throw wrong(
    path,
    'is no name of a user: it must be one word, such as pilot@EXAMPLE.ORG, that begins with no dash',
  );
}

function missing(file: string, what: string): ThresherError {
  return new ThresherError('credential-missing', `${file} ${what}`, { file });
}

function wrong(file: string, what: string): ThresherError {
  return new ThresherError('credential-wrong', `${file} ${what}`, { file });
}
