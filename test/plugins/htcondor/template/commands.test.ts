import { expect } from 'chai';
import { withCommands } from '../../../../src/plugins/htcondor/template/commands.ts';
import { parseTemplate } from '../../../../src/plugins/htcondor/template/template.ts';

function lines(
  text: string,
  commands: Readonly<Record<string, string>>,
  allowed: readonly string[] = [],
): string[] {
  const loaded = parseTemplate(`executable: /bin/true\n${text}`, 'a.yaml', {});
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return withCommands(loaded.template.statements, commands, allowed).flatMap((one) =>
    one.kind === 'command' ? [`${one.key} = ${one.render({})}`] : [],
  );
}

describe('commands of a payload in a submit description', () => {
  it('come after those of the template, with nothing in them that HTCondor would replace', () => {
    expect(
      lines('request_cpus: "1"', { request_cpus: '4', '+MaxRuntime': '10', '+WantOS': '"$x"' }),
    ).to.deep.equal([
      'executable = /bin/true',
      'request_cpus = 1',
      'request_cpus = 4',
      '+MaxRuntime = 10',
      '+WantOS = "$(DOLLAR)x"',
    ]);
  });

  it('leave the requirements of the template in force', () => {
    expect(lines('requirements: Arch == "X86_64"', { Requirements: 'Memory > 5 || true' }).at(-1)).to.equal(
      'Requirements = (Arch == "X86_64") && (Memory > 5 || true)',
    );
  });

  it('are those that the queue allows beside the lists', () => {
    expect(lines('', { '+MyTag': '1' }, ['my.mytag']).at(-1)).to.equal('+MyTag = 1');
  });

  it('are refused where a source did not check them', () => {
    for (const [key, value] of [
      ['executable', '/bin/id'],
      ['+WantOS', '$ENV(HOME)'],
      ['+WantOS', '1\nqueue 5'],
      ['+OtherJobRemoveRequirements', 'true'],
      ['+MyTag', '1'],
      ['a\nqueue 5', '1'],
    ] as const)
      expect(() => lines('', { [key]: value }), key).to.throw(/cannot be given to HTCondor/);
  });
});
