import { chmodSync, cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { temporaryDirectory } from '../support/temporary.ts';
import { type Files, type Outcome, plant, root, run } from './copied-tree.ts';

const shell = (...lines: readonly string[]): string => `#!/bin/sh\n${lines.join('\n')}\n`;
/** Puts a program where commands are looked for first. */
const bringing = (name: string): string => `printf '#!/bin/sh\\n' >bin/${name}; chmod +x bin/${name}`;

/** A directory with programs that come before those of the machine. */
function machine(programs: Files): string {
  const tree = temporaryDirectory();
  cpSync(join(root, 'scripts'), join(tree, 'scripts'), { recursive: true });
  cpSync(join(root, '.ci'), join(tree, '.ci'), { recursive: true });
  plant(tree, { 'bin/.keep': '', called: '' });
  for (const [name, text] of Object.entries(programs)) {
    plant(tree, { [`bin/${name}`]: text });
    chmodSync(join(tree, 'bin', name), 0o755);
  }
  return tree;
}

/** Runs lines of a script that has scripts/lib.sh, as `scripts/test` would. */
const script = (tree: string, lines: string): Promise<Outcome> =>
  run(
    ['bash', '-c', `set -euo pipefail; unset THRESHER_INSTALL; . scripts/lib.sh; ${lines}`, 'scripts/test'],
    tree,
    `${join(tree, 'bin')}:${process.env.PATH ?? ''}`,
  );
const called = (tree: string): string => readFileSync(join(tree, 'called'), 'utf8');

const needs = 'need sh dash; need no-such-a a; need no-such-b b; need no-such-a a; bring_in; echo went on';
const asRoot = { id: shell('echo 0') };
const asUser = { id: shell('echo 1000') };

describe('what the scripts need of a machine', () => {
  it('is named all at once, with the command that brings it', async () => {
    const tree = machine({ ...asRoot, 'apt-get': shell('echo "$*" >>called') });
    const { status, output } = await script(tree, needs);
    expect(output).to.equal(
      "test: 'no-such-a' 'no-such-b' missing; on Debian: apt-get install a b (with THRESHER_INSTALL=apt this is done here)\n",
    );
    expect(status).to.equal(1);
    expect(called(tree), 'nothing is installed unasked').to.equal('');
  });

  it('is no matter where nothing is missing', async () => {
    const tree = machine({ 'apt-get': shell('echo "$*" >>called') });
    const { status, output } = await script(
      tree,
      'THRESHER_INSTALL=apt; need sh dash; bring_in; echo went on',
    );
    expect({ status, output }).to.deep.equal({ status: 0, output: 'went on\n' });
    expect(called(tree)).to.equal('');
  });

  it('is installed where that is asked for, also from old lists of packages', async () => {
    const install = `case "$*" in *update*) exit 100 ;; esac; ${bringing('no-such-a')}; ${bringing('no-such-b')}`;
    const tree = machine({ ...asRoot, 'apt-get': shell('echo "$*" >>called', install) });
    const { status, output } = await script(tree, `THRESHER_INSTALL=apt; ${needs}`);
    expect(output).to.match(
      /^installing Debian packages: a b\nwent on\ntest: apt-get update failed, see above; going on\n$/,
    );
    expect(status).to.equal(0);
    expect(called(tree)).to.match(/ update\n.* install --yes --no-install-recommends a b\n$/);
  });

  it('is named where it could not be installed', async () => {
    const tree = machine({ ...asRoot, 'apt-get': shell('exit 100') });
    const { status, output } = await script(tree, `THRESHER_INSTALL=apt; ${needs}`);
    expect(output).to.contain(
      "'no-such-a' 'no-such-b' missing, and this failed, see above: apt-get install a b\n",
    );
    expect(output).to.not.contain('went on');
    expect(status).to.equal(1);
  });

  it('is not there because apt-get says so', async () => {
    const tree = machine({ ...asRoot, 'apt-get': shell('exit 0') });
    const { status, output } = await script(tree, `THRESHER_INSTALL=apt; ${needs}`);
    expect(output).to.contain("'no-such-a' 'no-such-b' missing, though these packages are installed: a b\n");
    expect(status).to.equal(1);
  });

  it('is there once it is found, also where no path names it', async () => {
    const lines =
      'has_it() { [ -e it ]; }; need_that has_it "part of it" its-package; bring_in; echo went on';
    const tree = machine({ ...asRoot, 'apt-get': shell('touch it') });
    const { status, output } = await script(tree, `THRESHER_INSTALL=apt; ${lines}`);
    expect({ status, output }).to.deep.equal({
      status: 0,
      output: 'installing Debian packages: its-package\nwent on\n',
    });
    const vain = machine({ ...asRoot, 'apt-get': shell('exit 0') });
    expect((await script(vain, `THRESHER_INSTALL=apt; ${lines}`)).output).to.contain(
      "'part of it' missing, though these packages are installed: its-package\n",
    );
  });

  it('is left to root', async () => {
    const tree = machine({ ...asUser, 'apt-get': shell('echo "$*" >>called') });
    const { status, output } = await script(tree, `THRESHER_INSTALL=apt; ${needs}`);
    expect(output).to.equal(
      "test: 'no-such-a' 'no-such-b' missing, and only root may do: apt-get install a b\n",
    );
    expect(status).to.equal(1);
    expect(called(tree)).to.equal('');
  });

  it('has root in it for a real node', async () => {
    const { status, output } = await script(machine(asUser), 'need_for_node; echo went on');
    expect(output).to.match(/^test: a real Kubernetes node needs root: .*\n$/);
    expect(status).to.equal(1);
  });

  it('has a busybox in it that needs no libraries', async () => {
    const dynamic = machine({ ...asRoot, ldd: shell('exit 0'), 'apt-get': shell('exit 100') });
    expect((await script(dynamic, 'need_for_node; bring_in')).output).to.match(
      /install .*\bbusybox-static\b/,
    );
    const fixed = machine({ ...asRoot, ldd: shell('exit 1') });
    expect((await script(fixed, 'need_for_node; bring_in')).output).to.equal('');
  });
});

describe('an old Go', () => {
  const goOf = (version: string, more = ''): string =>
    shell(
      'cd "$(dirname "$0")/.."',
      'echo "$*" >>called',
      `case "$2" in GOVERSION) echo ${version} ;; GOHOSTOS) echo linux ;; GOHOSTARCH) echo amd64 ;; esac`,
      more,
    );
  const taken = 'newer_go; go env GOVERSION';
  const newer = [
    'if [ "$1 $2" = "mod download" ]; then',
    'mkdir -p new/bin new/pkg/tool/linux',
    "printf '#!/bin/sh\\necho go1.26.8\\n' >new/bin/go; touch new/pkg/tool/linux/compile",
    'printf \'{\\n\\t"Zip": "no",\\n\\t"Dir": "%s/new",\\n\\t"Sum": "h1:="\\n}\\n\' "$PWD"; fi',
  ].join('\n');

  it('is taken for a newer one that is fetched as a module', async () => {
    for (const version of ['go1.19.8', 'go1.25.1']) {
      const tree = machine({ go: goOf(version, newer) });
      const { status, output } = await script(tree, taken);
      expect(output).to.equal(`fetching Go 1.26, since ${join(tree, 'bin/go')} is ${version}\ngo1.26.8\n`);
      expect(status).to.equal(0);
      expect(called(tree)).to.contain(
        'mod download -json golang.org/toolchain@v0.0.1-go1.26.8.linux-amd64\n',
      );
    }
  });

  it('is told from one that is new enough', async () => {
    for (const version of ['go1.26rc1', 'go1.26.8', 'go1.30.1', 'devel_go1.27-1234']) {
      const tree = machine({ go: goOf(version, newer) });
      const { status, output } = await script(tree, taken);
      expect({ status, output }).to.deep.equal({ status: 0, output: `${version}\n` });
      expect(existsSync(join(tree, 'new'))).to.equal(false);
    }
  });

  it('ends scripts/test where no newer one comes', async () => {
    const tree = machine({
      go: goOf('go1.19.8', '[ "$1" != mod ] || { echo "no route to host" >&2; exit 1; }'),
    });
    const { status, output } = await script(tree, taken);
    expect(output).to.match(
      /no route to host\ntest: Go 1\.26 could not be fetched, see above; .*go\.dev\/dl\n$/,
    );
    expect(status).to.equal(1);
  });
});

describe('the environment of the suite', () => {
  const callers = {
    CONDOR_CONFIG: 'their pool',
    CONDOR_PREFIX: 'their tools',
    KUBECONFIG: 'their cluster',
    X509_USER_PROXY: 'their proxy',
    NODE_OPTIONS: '--no-warnings',
    GOOGLE_APPLICATION_CREDENTIALS: 'their cloud',
    LANG: 'de_DE.UTF-8',
  };
  const needed = {
    HOME: 'their home',
    https_proxy: 'a proxy',
    npm_config_registry: 'a registry',
    GOPROXY: 'a proxy of modules',
    GOFLAGS: '-x=a b',
    SSL_CERT_FILE: 'certificates',
    NODE_EXTRA_CA_CERTS: 'more of them',
    PIP_INDEX_URL: 'another registry',
    THRESHER_TEST_ENV: 'real systems',
  };

  /** As tests start a shell: its input is a socket. */
  const starts =
    "console.log(require('child_process').execFileSync('bash', ['-c', 'echo ours'], { encoding: 'utf8' }).trim())";

  async function inside(tree: string): Promise<Map<string, string>> {
    const given = Object.entries({ ...callers, ...needed }).map(([name, value]) => `${name}=${value}`);
    const path = `${join(tree, 'tools')}:${join(tree, 'bin')}:${process.env.PATH ?? ''}`;
    const { output } = await run(['env', ...given, 'scripts/own-environment', 'env'], tree, path);
    return new Map(
      output
        .trimEnd()
        .split('\n')
        .map((line) => [line.replace(/=.*/, ''), line.replace(/^[^=]*=/, '')]),
    );
  }

  it('has what builds and installs need of the caller, and nothing else', async () => {
    const environment = await inside(machine({}));
    expect(environment).to.include.all.keys(Object.keys(needed));
    for (const [name, value] of Object.entries(needed)) expect(environment.get(name), name).to.equal(value);
    for (const [name, value] of Object.entries(callers))
      expect(environment.get(name), name).to.not.equal(value);
  });

  it('finds commands where every system has them, and Node, npm and Go where the caller has them', async () => {
    const tree = machine({ go: shell('echo 1') });
    plant(tree, { 'tools/condor_submit': shell('echo theirs') });
    const folders = (await inside(tree)).get('PATH')?.split(':');
    expect(folders).to.include.members([join(tree, 'bin'), '/usr/sbin', '/usr/bin']);
    expect(folders).to.not.include(join(tree, 'tools'));
  });

  it('lets no program read the ~/.bashrc of the caller', async () => {
    const tree = machine({});
    plant(tree, { '.bashrc': 'echo theirs\n' });
    const command = ['env', `HOME=${tree}`, 'scripts/own-environment', process.execPath, '-e', starts];
    expect((await run(command, tree)).output).to.equal('ours\n');
  });

  it('is made by scripts/test before anything else', async () => {
    const tree = machine({});
    plant(tree, { 'scripts/lib.sh': 'env; exit\n' });
    const { output } = await run(['env', 'CONDOR_CONFIG=x', 'GOPROXY=y', 'scripts/test'], tree);
    expect(output).to.contain('GOPROXY=y\n').and.not.contain('CONDOR_CONFIG');
  });
});

describe('.ci/run', () => {
  const says = shell('echo "$(id -u) installs with $THRESHER_INSTALL $*"');
  const ci = async (programs: Files): Promise<Outcome> => {
    const tree = machine(programs);
    plant(tree, { 'scripts/test': says });
    return run(['.ci/run'], tree, `${join(tree, 'bin')}:${process.env.PATH ?? ''}`);
  };

  it('runs scripts/test, which may install packages there', async () => {
    expect(await ci(asRoot)).to.include({ status: 0, output: '0 installs with apt \n' });
  });

  it('becomes root where it may', async () => {
    const id = shell('cat now-root 2>/dev/null || echo 1000');
    const sudo = shell('[ "$2" = true ] && exit 0', 'echo 0 >now-root', 'shift 2', 'exec "$@"');
    expect(await ci({ id, sudo })).to.include({ status: 0, output: '0 installs with apt \n' });
  });

  it('goes on where it may not, and scripts/test says what it lacks', async () => {
    const sudo = shell('echo "a password is required" >&2; exit 1');
    expect(await ci({ ...asUser, sudo })).to.include({ status: 0, output: '1000 installs with apt \n' });
  });
});
