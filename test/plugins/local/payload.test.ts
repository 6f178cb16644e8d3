import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import type { Payload, SubmitOutcome, Submitter, Worker } from '../../../src/plugins/contracts/index.ts';
import { LocalHost } from '../../../src/plugins/local/host.ts';
import { localBackend } from '../../../src/plugins/local/index.ts';
import { writeFiles } from '../../../src/plugins/local/payload-files.ts';
import { shimScript } from '../../../src/plugins/local/shim.ts';
import { type BackendParts, partOf } from '../../support/backend-parts.ts';
import { pluginContext } from '../../support/plugin-context.ts';
import { workerOf } from '../../support/samples.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const { signal } = new AbortController();
const file = (name: string, text: string, more: object = {}) => ({
  name,
  mode: 0o644,
  content: Buffer.from(text).toString('base64'),
  ...more,
});

class LocalSite {
  readonly directory = temporaryDirectory();
  readonly root = join(this.directory, 'work');
  readonly #context = pluginContext({ stateDir: this.directory, configDir: this.directory });

  constructor(template: object = {}) {
    writeFileSync(
      join(this.directory, 'pilot.yaml'),
      stringify({ command: '/bin/true', cpu: 0, ...template }),
    );
  }

  part<K extends keyof BackendParts>(kind: K): BackendParts[K] {
    const definition = localBackend.find((part) => part.kind === kind);
    return partOf(definition, kind, { workDir: 'work', templateFile: 'pilot.yaml' }, this.#context);
  }

  path(...names: string[]): string {
    return join(this.root, '1', ...names);
  }

  /** @returns stdout of worker 1, once it has ended */
  async run(payload: Payload, attempt = 1, submitter: Submitter = this.part('submitter')): Promise<string> {
    expect((await this.submit(payload, attempt, submitter))?.kind).to.equal('accepted');
    await until('it has ended', () => existsSync(this.path('exit')));
    return readFileSync(this.path('stdout'), 'utf8');
  }

  async submit(
    payload: Payload,
    attempt = 1,
    submitter: Submitter = this.part('submitter'),
  ): Promise<SubmitOutcome | undefined> {
    return (await submitter.submit([{ ...this.worker(attempt), payload }], signal)).get(1);
  }

  worker(attempt = 1): Worker {
    return workerOf(1, { attempt, placement: `local:${this.root}` });
  }
}

describe('the payload of local workers', () => {
  it('replaces what a daemon that was killed had written of it', async () => {
    const site = new LocalSite();
    await new LocalHost(site.root, pluginContext({ stateDir: site.directory })).prepared();
    // Attempt 1 came as far as half of the first file; attempt 2 finds a stray directory under its own name.
    mkdirSync(site.path('payload.1'), { recursive: true });
    writeFileSync(site.path('payload.1', 'token'), 'half of a sec', { mode: 0o600 });
    mkdirSync(site.path('payload.2', 'input'), { recursive: true });
    const submitter = site.part('submitter');
    expect((await submitter.find([site.worker()], signal)).get(1)?.kind).to.equal('absent');
    const payload = { files: [file('input', 'whole')], argv: ['cat', 'input'] };
    expect(await site.run(payload, 2, submitter)).to.equal('whole');
    expect(readdirSync(site.root, { recursive: true, encoding: 'utf8' }).join()).not.to.include('token');
  });

  it('writes through no link, wherever one stands', async () => {
    const directory = temporaryDirectory();
    const outside = join(directory, 'outside');
    mkdirSync(outside);
    symlinkSync(outside, join(directory, 'payload'));
    const refused = await writeFiles(join(directory, 'payload'), [file('a', '')]).catch(
      (error: unknown) => error,
    );
    expect(refused).to.have.property('code', 'EEXIST');
    expect(readdirSync(outside)).to.deep.equal([]);
  });

  it('gives secret files to their owner alone, and removes all with the worker', async () => {
    const site = new LocalSite();
    const files = [
      file('token', 'hush', { secret: true, mode: 0o755 }),
      file('deep/er/open', '', { mode: 0o444 }),
    ];
    await site.run({ files });
    expect(statSync(site.path('payload.1', 'token')).mode & 0o777).to.equal(0o600);
    expect(statSync(site.path('payload.1', 'deep', 'er', 'open')).mode & 0o777).to.equal(0o444);
    const [removed] = (await site.part('sweeper').remove([site.worker()], signal)).values();
    expect(removed).to.deep.equal({ kind: 'gone' });
    expect(readdirSync(site.root, { recursive: true, encoding: 'utf8' }).join()).not.to.include('token');
  });

  it('runs the program of a name that the shell knows, too, by the PATH of the payload alone', async () => {
    const site = new LocalSite();
    const echo = file('echo', '#!/bin/sh\nprintf "%s of %s\\n" "$1" "$PATH"\n', { mode: 0o755 });
    // Not one program of the scripts that start a worker is found there.
    const PATH = site.path('payload.1');
    expect(await site.run({ files: [echo], argv: ['echo', 'a\\nb'], env: { PATH } })).to.equal(
      `a\\nb of ${PATH}\n`,
    );
  });

  it('ends a worker whose program is not there with 127, as a shell does', async () => {
    const site = new LocalSite();
    expect(await site.run({ argv: ['./nothing'] })).to.equal('');
    expect(readFileSync(site.path('exit'), 'utf8')).to.equal('127\n');
  });

  it('rejects a worker whose files cannot be written, and starts the next attempt', async () => {
    const site = new LocalSite();
    const submitter = site.part('submitter');
    await submitter.preflight(signal);
    // A file stands in the place of the worker's directory.
    writeFileSync(join(site.root, '1'), '');
    expect(await site.submit({ argv: ['true'] }, 1, submitter)).to.include({
      kind: 'rejected',
      permanent: false,
    });
    spawnSync('rm', [join(site.root, '1')]);
    expect(await site.run({ argv: ['echo', 'ran'] }, 2, submitter)).to.equal('ran\n');
  });

  it('rejects a worker for good that needs more than the whole machine', async () => {
    const site = new LocalSite({ cpu: 100_000 });
    const outcomes = await site.part('submitter').submit([site.worker()], signal);
    const [outcome] = outcomes.values();
    expect(outcome).to.include({ kind: 'rejected', permanent: true });
    expect(outcome).to.have.nested.property('error.code', 'needs-too-large');
  });

  it('shows a payload without its contents, and a template with what each worker brings', async () => {
    const site = new LocalSite({ args: ['${payload.image}'] });
    const submitter = site.part('submitter');
    const bare = await submitter.render?.(site.worker());
    expect(bare?.document).to.deep.include({ args: ['${payload.image}'] });
    expect(bare?.notes.join()).to.include('${payload.image}: each worker gets it with its payload');
    const payload: Payload = {
      values: { image: 'busybox' },
      files: [file('token', 'hush', { secret: true })],
      env: { A: 'b' },
    };
    const filled = await submitter.render?.({ ...site.worker(), payload });
    expect(filled?.document).to.deep.include({ args: ['busybox'] });
    expect(filled?.environment).to.include({ A: 'b', THRESHER_PAYLOAD_DIR: site.path('payload.1') });
    expect(filled?.notes.join()).to.include('"token", mode 0600, 4 bytes, secret');
    expect(JSON.stringify(filled)).not.to.match(/hush|aHVzaA/);
  });

  it('starts its scripts with no variable that a worker may have a name for', () => {
    const names = [...shimScript.matchAll(/(?:^|[\s;({])([A-Za-z_]\w*)=/gm)].map(([, name]) => name);
    expect(names.length).to.be.greaterThan(5);
    expect(names.filter((name) => name !== 'IFS' && !name?.startsWith('thresher_'))).to.deep.equal([]);
  });
});
