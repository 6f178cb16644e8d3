import { expect } from 'chai';
import { withCommands } from '../../../../src/plugins/htcondor/template/commands.ts';
import type { Values } from '../../../../src/plugins/htcondor/template/placeholders.ts';
import { parseTemplate } from '../../../../src/plugins/htcondor/template/template.ts';

function lines(
  text: string,
  commands: Readonly<Record<string, string>>,
  allowed: readonly string[] = [],
  values: Values = {},
): string[] {
  const loaded = parseTemplate(`executable: /bin/true\n${text}`, 'a.yaml', {});
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return withCommands(loaded.template.statements, commands, allowed).flatMap((one) =>
    one.kind === 'command' ? [`${one.key} = ${one.render(values)}`] : [],
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

  it('have expressions for memory and disk kept within what a machine may have', () => {
    const memory = 'ifThenElse(NumHolds == 0, -1e9, $(ProcId))';
    expect(
      lines('request_memory: 5', { request_memory: memory, request_disk: '2 GB' }).slice(-2),
    ).to.deep.equal([`request_memory = min({67108864, max({0, (${memory})})})`, 'request_disk = 2 GB']);
    for (const value of ['-1000000', '1000000000', 'real("NaN")'])
      expect(() => lines('', { request_cpus: value }), value).to.throw(
        'payload/submit: request_cpus cannot be given to HTCondor: its value is',
      );
  });

  it('leave the requirements of the template in force', () => {
    expect(lines('requirements: Arch == "X86_64"', { Requirements: 'Memory > 5 || true' }).at(-1)).to.equal(
      'Requirements = (Arch == "X86_64") && (Memory > 5 || true)',
    );
  });

  it('hole 1: leave what the template says by the other names of HTCondor in force', () => {
    const last = (text: string, commands: Readonly<Record<string, string>>) => lines(text, commands).at(-1);
    expect(last('PeriodicRemove: A > 1', { periodic_remove: 'false' })).to.equal(
      'periodic_remove = (A > 1) || (false)',
    );
    expect(last('PeriodicHold: A > 1', { periodic_hold: 'false' })).to.equal(
      'periodic_hold = (A > 1) || (false)',
    );
    expect(last('AllowedJobDuration: "50"', { allowed_job_duration: '60' })).to.equal(
      'allowed_job_duration = 50',
    );
    for (const [text, key] of [
      ['attributes: {PeriodicRemove: A > 1}', 'periodic_remove'],
      ['attributes: {Requirements: A > 1}', 'requirements'],
      ['attributes: {AllowedExecuteDuration: 3}', 'allowed_execute_duration'],
      ['attributes: {ConcurrencyLimits: a}', 'concurrency_limits'],
      ['MY.PeriodicRemove: A > 1', 'periodic_remove'],
    ] as const)
      expect(() => last(text, { [key]: key === 'concurrency_limits' ? 'b' : '1' }), text).to.throw(
        /the template of the queue has .*, which counts for all/,
      );
    for (const text of [
      'PeriodicHold: A',
      'on_exit_hold: A',
      'OnExitHold: A',
      'attributes: {PeriodicHold: A}',
    ])
      expect(last(text, { periodic_release: 'true' }), text).to.equal(
        'periodic_release = (true) && !member(HoldReasonCode, {3, 33, 46, 47})',
      );
  });

  it('leave the limits of the template and of the queue in force', () => {
    const last = (text: string, commands: Readonly<Record<string, string>>, maxWalltime?: number) =>
      lines(text, commands, [], maxWalltime === undefined ? {} : { maxWalltime }).at(-1);
    expect(last('concurrency_limits: site', { concurrency_limits: 'NONE' })).to.equal(
      'concurrency_limits = site, NONE',
    );
    expect(last('', { Concurrency_Limits: 'licence' })).to.equal('Concurrency_Limits = licence');
    for (const [text, wanted, maxWalltime, given] of [
      ['', '99999999', 3600, '3600'],
      ['', '60', 3600, '60'],
      ['', '60', 0, '60'],
      ['', '60', undefined, '60'],
      ['allowed_execute_duration: "50"', '60', 3600, '50'],
      ['allowed_execute_duration: A + B', '60', undefined, 'min({60, A + B})'],
      ['allowed_execute_duration: 24 * 3600', '999999999', 0, 'min({999999999, 24 * 3600})'],
      ['allowed_execute_duration: 24 * 3600', '60', 50, 'min({60, 24 * 3600, 50})'],
    ] as const)
      expect(last(text, { allowed_execute_duration: wanted }, maxWalltime)).to.equal(
        `allowed_execute_duration = ${given}`,
      );
    expect(last('', { allowed_job_duration: '99' }, 10)).to.equal('allowed_job_duration = 10');
  });

  it('leave the group and the run times of the template in force', () => {
    const last = (text: string, commands: Readonly<Record<string, string>>) => lines(text, commands).at(-1);
    for (const [text, key, value] of [
      ['accounting_group: group_prod', 'accounting_group', 'group_other'],
      ['AccountingGroup: group_prod', 'accounting_group', 'group_other'],
      ['attributes: {AccountingGroup: group_prod}', 'accounting_group', 'group_other'],
      ['nice_user: "true"', 'nice_user', 'false'],
      ['attributes: {JobFlavour: espresso}', 'MY.JobFlavour', '"nextweek"'],
    ] as const)
      expect(() => last(text, { [key]: value }), text).to.throw(
        /the template of the queue has .*, which counts/,
      );
    expect(last('', { accounting_group: 'group_other' })).to.equal('accounting_group = group_other');
    for (const key of ['+MaxRuntime', 'my.maxruntime'])
      expect(last('attributes: {MaxRuntime: 3600}', { [key]: '999999' }), key).to.equal(`${key} = 3600`);
    expect(last('attributes: {MaxWallTimeMins: 60}', { '+MaxWallTimeMins': '9' })).to.equal(
      '+MaxWallTimeMins = 9',
    );
    expect(last('MY.MaxRuntime: A * 2', { '+MaxRuntime': '9' })).to.equal('+MaxRuntime = min({9, A * 2})');
    expect(last('', { '+MaxRuntime': '1200 + 1' })).to.equal('+MaxRuntime = 1200 + 1');
    for (const value of ['undefined', '-1', '0', '1200 + 1'])
      expect(() => last('MY.MaxRuntime: "60"', { '+MaxRuntime': value })).to.throw(/write a whole number$/);
  });

  it('hold and remove beside the template, and release nothing that a bound of the queue holds', () => {
    const last = (text: string, key: string, value: string) => lines(text, { [key]: value }).at(-1);
    for (const key of ['periodic_hold', 'periodic_remove']) {
      expect(last(`${key}: A`, key, 'false')).to.equal(`${key} = (A) || (false)`);
      expect(last('', key, 'ExitCode')).to.equal(`${key} = ExitCode`);
    }
    expect(last('', 'periodic_release', 'true')).to.equal(
      'periodic_release = (true) && !member(HoldReasonCode, {33, 46, 47})',
    );
    expect(last('periodic_hold: A', 'Periodic_Release', 'true')).to.equal(
      'Periodic_Release = (true) && !member(HoldReasonCode, {3, 33, 46, 47})',
    );
    for (const key of ['periodic_hold', 'Periodic_Hold'])
      expect(lines('', { periodic_release: 'true', [key]: 'ExitCode' })[1], 'what it holds itself').to.equal(
        'periodic_release = (true) && !member(HoldReasonCode, {3, 33, 46, 47})',
      );
    expect(last('', 'periodic_vacate', 'ExitCode'), 'it runs again once').to.equal(
      'periodic_vacate = (ExitCode) && NumJobStarts =?= 1',
    );
    expect(last('periodic_release: A', 'periodic_release', 'QDate')).to.equal(
      'periodic_release = (A) || ((QDate) && !member(HoldReasonCode, {33, 46, 47}))',
    );
    for (const value of ['true) || (true', 'true // ', '"', 'false) // )'])
      expect(() => last('', 'periodic_release', value), value).to.throw(
        /closes no|comment|no part of an expression/,
      );
  });

  it('are refused where they cannot stand beside those of the template', () => {
    for (const [text, key, why] of [
      ['concurrency_limits: site', 'concurrency_limits_expr', /counts for all its jobs/],
      ['concurrency_limits_expr: Owner', 'concurrency_limits', /counts for all its jobs/],
      ['concurrency_limits_expr: Owner', 'concurrency_limits_expr', /counts for all its jobs/],
    ] as const)
      expect(() => lines(text, { [key]: key.endsWith('_expr') ? '"x"' : 'x' }), text).to.throw(why);
    const text = 'executable = /bin/true\nif X\nrequirements = A\nelse\nrequirements = B\nendif\nqueue\n';
    const loaded = parseTemplate(text, 'a.sdf', {});
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const { statements } = loaded.template;
    expect(() => withCommands(statements, { requirements: 'C' })).to.throw(/between "if" and "endif"/);
    expect(withCommands(statements, { rank: 'C' })).to.have.length(statements.length + 1);
    for (const value of ['1 + 1', '-1', '', '1e9', 'MaxTime'])
      expect(() => lines('', { allowed_job_duration: value }), value).to.throw(
        /whole number of seconds|no value/,
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
