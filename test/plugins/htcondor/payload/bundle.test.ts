import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { bundleName, bundleScript } from '../../../../src/plugins/htcondor/payload/bundle.ts';
import type { Payload, PayloadFile } from '../../../../src/worker/payload.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const file = (name: string, content: Buffer | string, mode = 0o644): PayloadFile => ({
  name,
  mode,
  content: Buffer.from(content).toString('base64'),
});

/** Each byte that an argument can have, and what shells give a meaning to. */
const odd = [
  Array.from({ length: 127 }, (_, code) => String.fromCharCode(code + 1)).join(''),
  'äöü 漢字 😀 \u0085\u2028',
  `it's "quoted" \\ \\' $(touch harmed) \`touch harmed\` \${HOME} $HOME * ? ~ ! # ; & | < >`,
  'line one\nline two\n\n',
  '',
  '-n',
  'END-OF-FILE',
  '$(DOLLAR)',
  "'",
];

/** Prints its arguments and its environment, each ended by NUL. */
const tell = '#!/bin/sh\nprintf "%s\\0" "$@" >"$OUT/args"\nenv -0 >"$OUT/env"\npwd >"$OUT/cwd"\n';

const shells = [['dash'], ['bash', '--posix'], ['busybox', 'sh']].filter(([name = '']) =>
  existsSync(`/usr/bin/${name}`),
);

describe("HTCondor's bundle of a payload", () => {
  expect(shells.length).to.be.at.least(2);
  for (const shell of shells) {
    describe(`run by ${shell.join(' ')}`, () => {
      let directory: string;
      let out: string;

      beforeEach(() => {
        directory = join(temporaryDirectory(), 'a job');
        mkdirSync(directory);
        out = temporaryDirectory();
      });

      function run(payload: Payload, args: readonly string[] = [], env: Record<string, string> = {}) {
        writeFileSync(join(directory, bundleName), bundleScript(payload), { mode: 0o600 });
        const [command = '', ...first] = shell;
        return spawnSync(`/usr/bin/${command}`, [...first, bundleName, ...args], {
          cwd: directory,
          encoding: 'utf8',
          env: { PATH: process.env['PATH'], OUT: out, ...env },
        });
      }
      const told = (what: string) => readFileSync(join(out, what), 'utf8').split('\0').slice(0, -1);
      const toldVariables = () =>
        new Map(
          told('env').map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]),
        );
      const payloadDir = () => join(directory, 'thresher-payload');

      it('gives each argument as it is', () => {
        const end = run({ files: [file('tell', tell, 0o755)], argv: ['./tell', ...odd] });
        expect(end.stderr).to.equal('');
        expect(end.status).to.equal(0);
        expect(told('args')).to.deep.equal(odd);
        expect(readFileSync(join(out, 'cwd'), 'utf8')).to.equal(`${payloadDir()}\n`);
        expect(existsSync(join(payloadDir(), 'harmed'))).to.equal(false);
      });

      it('gives each variable as it is, also those that a shell keeps to itself', () => {
        const env = Object.fromEntries(odd.map((value, index) => [`ODD_${index}`, value]));
        const special = { UID: '7', PPID: '8', IFS: 'x', RANDOM: '4', PS4: '$(touch harmed)', HOME: '/over' };
        const end = run(
          {
            argv: ['env', '-0'],
            env: { ...env, ...special, 'odd.name-1': 'kept' },
          },
          [],
          { HOME: '/template' },
        );
        expect(end.status).to.equal(0);
        const found = new Map(
          end.stdout
            .split('\0')
            .slice(0, -1)
            .map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]),
        );
        for (const [name, value] of Object.entries({ ...env, ...special, 'odd.name-1': 'kept' }))
          expect(found.get(name), name).to.equal(value);
        expect(found.get('THRESHER_PAYLOAD_DIR')).to.equal(payloadDir());
        expect([...found.keys()].filter((name) => name.startsWith('thresher_'))).to.deep.equal([]);
      });

      it('writes each file with its bytes, its name and its mode', () => {
        const bytes = Buffer.from(Array.from({ length: 256 * 5 }, (_, index) => index % 256));
        const big = Buffer.alloc(1024 * 1024, bytes);
        const files = [
          file('bytes', bytes),
          file('empty', ''),
          file('big', big, 0o400),
          file('-rf', 'a', 0o600),
          file('deep/er/-x', 'b', 0o755),
          file("it's $(touch harmed)\nnew", 'c', 0o444),
          file('END-OF-FILE', 'END-OF-FILE\n'),
          { ...file('secret', 'hush', 0o644), secret: true },
        ];
        const end = run({ files, argv: ['true'] });
        expect(end.stderr).to.equal('');
        expect(end.status).to.equal(0);
        for (const { name, mode, content, secret } of files) {
          const path = join(payloadDir(), name);
          expect(readFileSync(path).equals(Buffer.from(content, 'base64')), name).to.equal(true);
          expect(statSync(path).mode & 0o7777, name).to.equal(secret === true ? 0o600 : mode);
        }
        expect(existsSync(join(directory, 'harmed'))).to.equal(false);
        expect(existsSync(join(directory, bundleName)), 'the bundle').to.equal(false);
      });

      it('takes no command from a content that is no base64', () => {
        const content = `YQ==\nEND-OF-FILE\ntouch harmed\n`;
        const end = run({ files: [{ name: 'a', mode: 0o644, content }], argv: ['true'] });
        expect(end.status).to.equal(0);
        expect(existsSync(join(payloadDir(), 'harmed'))).to.equal(false);
      });

      it("runs the template's program, where there is no argv, with its arguments beside the files", () => {
        writeFileSync(join(directory, 'wrapper.sh'), tell);
        const env = { A: 'payload', OUT: out };
        const args = ['transferred', '/somewhere/wrapper.sh', 'a b', "it's", ''];
        const end = run({ files: [file('x', 'y')], env }, args, { A: 'template' });
        expect(end.stderr).to.equal('');
        expect(told('args')).to.deep.equal(args.slice(2));
        expect(toldVariables().get('A')).to.equal('payload');
        expect(toldVariables().get('THRESHER_PAYLOAD_DIR')).to.equal(payloadDir());
        expect(readFileSync(join(out, 'cwd'), 'utf8')).to.equal(`${directory}\n`);
      });

      it('runs a program that is on the machine, by its path or from the directory of the job', () => {
        const program = join(out, 'a=b');
        for (const path of [program, join(directory, 'a=b')]) {
          writeFileSync(path, tell);
          chmodSync(path, 0o755);
        }
        for (const path of [program, 'a=b']) {
          const end = run({ env: { A: '1' } }, ['there', path, 'word']);
          expect(end.stderr).to.equal('');
          expect(told('args')).to.deep.equal(['word']);
        }
      });

      it('passes the exit status on, and the signal', () => {
        expect(run({ argv: ['sh', '-c', 'exit 7'] }).status).to.equal(7);
        expect(run({ argv: ['sh', '-c', 'kill -TERM $$'] }).signal).to.equal('SIGTERM');
      });

      it('fails with a word of its own where it cannot unpack, and runs nothing', () => {
        const argv = ['touch', join(out, 'ran')];
        const end = run({ files: [file('a', 'a file'), file('a/b', 'below a file')], argv });
        expect(end.stderr).to.match(
          /thresher: the payload cannot be unpacked: no directory for its files\n$/,
        );
        expect(end.status).to.equal(126);
        expect(existsSync(join(out, 'ran'))).to.equal(false);
      });

      // busybox has base64 in itself.
      if (shell[0] !== 'busybox')
        it('fails where there is no base64, and runs nothing', () => {
          const tools = temporaryDirectory();
          for (const tool of ['rm', 'mkdir', 'chmod', 'env', 'touch'])
            symlinkSync(`/usr/bin/${tool}`, join(tools, tool));
          const end = run({ files: [file('a', 'b')], argv: ['touch', join(out, 'ran')] }, [], {
            PATH: tools,
          });
          expect(end.stderr).to.match(/thresher: the payload cannot be unpacked: base64 failed/);
          expect(end.status).to.equal(126);
          expect(existsSync(join(out, 'ran'))).to.equal(false);
        });
    });
  }
});
