import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect } from 'chai';
import { realEnvironment } from '../../src/cli/environment.ts';
import { escape, manPage } from '../../src/cli/man-page.ts';
import { makeProgram } from '../../src/cli/program.ts';
import { allCommands, commandTree } from '../../src/cli/tree.ts';
import { runHere } from '../support/command-line.ts';

const tree = commandTree(await makeProgram(realEnvironment));
/** `groff` is no part of every system: the page is formatted where it exists. */
const groff = existsSync('/usr/bin/groff');

describe('manual page', () => {
  const page = manPage(tree);

  it('is what `thresher man` prints, and what the package gives to man', async () => {
    expect((await runHere('man')).stdout).to.equal(page);
    const text = readFileSync(resolve(import.meta.dirname, '../../package.json'), 'utf8');
    expect((JSON.parse(text) as { man: string }).man).to.equal('docs/thresher.8');
  });

  it('has every section, every command and every option of the program', () => {
    const sections = [...page.matchAll(/^\.SH (.*)$/gm)].map(([, name]) => name);
    expect(sections).to.deep.equal([
      ...['NAME', 'SYNOPSIS', 'DESCRIPTION', 'COMMANDS', 'OPTIONS'],
      ...['FILES', 'SIGNALS', 'ENVIRONMENT', 'EXIT STATUS', 'SEE ALSO'],
    ]);
    for (const { path, options, commands } of allCommands(tree)) {
      if (commands.length === 0) expect(page).to.contain(`\n\\fB${escape(path.slice(9))}\\fR`);
      for (const { names } of options) expect(page).to.contain(`\\fB${escape(names.at(-1) ?? '')}\\fR`);
    }
    expect(page).not.to.contain('__complete');
  });

  it('writes dashes, quotes and backslashes as they are typed, and no line as a request', () => {
    expect(escape("a-b 'c' \\d `e` ^~")).to.equal('a\\-b \\(aqc\\(aq \\ed \\(gae\\(ga \\(ha\\(ti');
    expect(escape('.TH\n.SH')).to.equal('\\&.TH .SH');
    expect(escape("'br")).to.equal('\\(aqbr');
    expect(escape('≤ 5')).to.equal('\\[u2264] 5');
  });

  if (groff) {
    it('is formatted without a warning, and reads as the help does', () => {
      const { stdout, stderr, status } = spawnSync('groff', ['-man', '-ww', '-Tutf8', '-P-c'], {
        input: page,
        encoding: 'utf8',
      });
      expect({ stderr, status }).to.deep.equal({ stderr: '', status: 0 });
      const text = execFileSync('sed', ['s/.\\x08//g'], { input: stdout, encoding: 'utf8' });
      expect(text)
        .to.match(/^NAME\n +thresher +-/m)
        .and.to.match(/^ +workers +\[--queue +queue\] +\[--status +status,\.\.\.\]/m)
        .and.to.match(/^ +submit\s+queue .*\[--file\s+path\[:name\]\][^]*\[--\s+arg\s+\.\.\.\]/m)
        .and.to.match(/^ +pause queue --reason text$/m)
        .and.to.match(/^EXIT STATUS\n +0 +All is well\.$/m);
    });
  }
});
