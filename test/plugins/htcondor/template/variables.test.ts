import { expect } from 'chai';
import {
  checkVariables,
  passedVariables,
  variablesOf,
} from '../../../../src/plugins/htcondor/template/variables.ts';
import { whySecret } from '../../../../src/util/secrets.ts';
import { templateOf } from '../../../support/htcondor-batch.ts';

const body = 'executable = /bin/true\n';
const named = (text: string, file?: string) =>
  variablesOf(templateOf(file === undefined ? body + text : text, file).statements).map(({ name }) => name);
const said = (text: string, own: Readonly<Record<string, string>>) =>
  checkVariables(templateOf(body + text).statements, own).map(
    ({ line, code, message }) => `${line} ${code} ${message}`,
  );

describe('variables that a submit description names', () => {
  it('are found in every command, in branches and in YAML', () => {
    expect(named('+Site = "$ENV(SITE)"\nif defined X\n+Y = "$ENV(Y:0)/$ENV(SITE)"\nendif\n')).to.deep.equal([
      'SITE',
      'Y',
    ]);
    const yaml = 'executable: /bin/true\nenvironment: { A: "$ENV(IN_ENV)" }\narguments: ["$ENV(IN_ARGS)"]\n';
    expect(named(yaml, 'a.yaml')).to.have.members(['IN_ENV', 'IN_ARGS']);
  });

  it('are not what HTCondor would not replace', () => {
    expect(named('a = $$ENV(SITE)\nb = $Env(SITE)\nc = $ENV( SITE )\nd = $ENV($(X))\n')).to.deep.equal([]);
  });

  it('are those of getenv, too', () => {
    expect(named('getenv = SITE, OTHER*\n')).to.deep.equal(['SITE']);
    expect(named('getenv = true\n')).to.deep.equal([]);
  });

  it('are passed where the daemon has them, and nothing else is', () => {
    const variables = variablesOf(templateOf(`${body}a = $ENV(SITE)$ENV(NONE)$ENV(MY_TOKEN)\n`).statements);
    const own = { SITE: 'CERN', OTHER: 'x', MY_TOKEN: 'secret' };
    expect(passedVariables(variables, own)).to.deep.equal({ SITE: 'CERN' });
  });

  for (const name of ['API_TOKEN', 'my_secret', 'DB_PASSWORD', 'PGPASSWORD', 'SSH_KEY', 'X_PASS', 'DB_PWD'])
    it(`are refused for their name: ${name}`, () => {
      const [first] = said(`a = $ENV(${name})\n`, { [name]: 'v4lue' });
      expect(first).to.match(
        /^2 template-wrong the variable \w+ is called as a \w+ is, and thresher passes no/,
      );
      expect(first).to.not.contain('v4lue');
    });

  for (const value of [
    'postgres://me:pw@host/db',
    'Bearer abc',
    'eyJhbGciOi.eyJzdWIi.c2ln',
    '-----BEGIN RSA PRIVATE KEY-----\nx',
  ])
    it(`are refused for what they hold: ${value.slice(0, 12)}`, () => {
      expect(said('a = $ENV(SITE)\n', { SITE: value })[0]).to.match(
        /^2 template-wrong the variable SITE holds/,
      );
      expect(passedVariables([{ name: 'SITE', line: 1, hasDefault: false }], { SITE: value })).to.deep.equal(
        {},
      );
    });

  it('c15: may be called as a secret where they name the file of one', () => {
    for (const name of ['SCITOKENS_FILE', 'IDTOKENS_FILE', 'BEARER_TOKEN_PATH', 'SECRET_DIR']) {
      const variables = [{ name, line: 2, hasDefault: false }];
      expect(said(`a = $ENV(${name})\n`, { [name]: '/run/secrets/file' })[0]).to.contain('variable-passed');
      expect(passedVariables(variables, { [name]: '/run/x' })).to.deep.equal({ [name]: '/run/x' });
      expect(said(`a = $ENV(${name}:/dev/null)\n`, {})[0]).to.contain('variable-passed');
      for (const value of ['eyJhbGciOi.eyJzdWIi.c2ln', 'v4lue', '/key+and/more=='])
        expect(passedVariables(variables, { [name]: value })).to.deep.equal({});
    }
  });

  it('may be those that a job usually needs', () => {
    const usual = [
      'HOME',
      'PWD',
      'SITE',
      'X509_CERT_DIR',
      'PANDA_HOME',
      'COMPASS',
      'HARVESTER_ID',
      'http_proxy',
    ];
    expect(usual.filter((name) => whySecret(name, '/some/where') !== undefined)).to.deep.equal([]);
  });

  it('are named, with those that are not set', () => {
    expect(said('a = $ENV(SITE)\nb = $ENV(NONE)\nc = $ENV(NOT:x)\n', { SITE: 'CERN' })).to.deep.equal([
      "2 variable-passed the variable SITE of the daemon's environment is passed to condor_submit",
      '3 template-risky the variable NONE is not set here, and HTCondor writes UNDEFINED for it: set it in the environment of the daemon, or write $ENV(NONE:DEFAULT)',
      "4 variable-passed the variable NOT of the daemon's environment is not set here",
    ]);
  });

  it('are warned of where they cannot be known', () => {
    expect(said('a = $ENV($(X))\n', {})[0]).to.contain('this $ENV names no variable');
    expect(said('getenv = true\n', {})[0]).to.contain('name each variable that the job needs');
  });
});
