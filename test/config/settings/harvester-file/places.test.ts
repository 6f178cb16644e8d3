import { expect } from 'chai';
import { findQueueFile, findSettings } from '../../../../src/config/settings/harvester-file/places.ts';
import { ThresherError } from '../../../../src/worker/errors.ts';

const machine = { env: {}, hostname: 'h', home: '/root' };
const atHome = { ...machine, env: { PANDA_HOME: '/opt/panda' } };
/** A machine that has only these files, each with what it is a link to. */
const only = (files: Record<string, string | null>) => (path: string) =>
  Object.hasOwn(files, path) ? (files[path] ?? path) : undefined;

function failure(call: () => unknown): [string, string] {
  try {
    call();
  } catch (error) {
    if (error instanceof ThresherError) return [error.code, error.message];
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('the settings file when the command line names none', () => {
  it("the settings file is thresher's own if it exists", () => {
    const files = { '/etc/thresher/thresher.yaml': null, '/etc/panda/panda_harvester.cfg': null };
    expect(findSettings(machine, only(files))).to.equal('/etc/thresher/thresher.yaml');
  });

  for (const place of [
    '/etc/panda',
    '/usr/etc/panda',
    '/root/etc/panda',
    '/opt/panda/etc/panda',
    '/opt/panda/usr/etc/panda',
  ]) {
    it(`the settings file is else Harvester's in ${place}`, () => {
      const file = `${place}/panda_harvester.cfg`;
      expect(findSettings(atHome, only({ [file]: null }))).to.equal(file);
    });
  }

  it('may be found in two places when both are one file', () => {
    const files = {
      '/etc/panda/panda_harvester.cfg': '/real',
      '/opt/panda/etc/panda/panda_harvester.cfg': '/real',
    };
    expect(findSettings(atHome, only(files))).to.match(/panda_harvester\.cfg$/);
  });

  it('is not guessed where Harvester would put several together', () => {
    const files = { '/etc/panda/panda_harvester.cfg': null, '/root/etc/panda/panda_harvester.cfg': null };
    expect(failure(() => findSettings(machine, only(files)))).to.deep.equal([
      'settings-ambiguous',
      'there are /etc/panda/panda_harvester.cfg and /root/etc/panda/panda_harvester.cfg; Harvester puts them together, thresher reads one file: name it with --config',
    ]);
  });

  it('is not looked for below an empty PANDA_HOME', () => {
    const empty = { ...machine, env: { PANDA_HOME: '' } };
    expect(failure(() => findSettings(empty, only({ 'etc/panda/panda_harvester.cfg': null })))[0]).to.equal(
      'settings-missing',
    );
  });

  it('is asked for, with all places, where there is none', () => {
    expect(failure(() => findSettings(atHome, only({})))).to.deep.equal([
      'settings-missing',
      'there is no settings file; looked for /etc/thresher/thresher.yaml, /etc/panda/panda_harvester.cfg, /usr/etc/panda/panda_harvester.cfg, /root/etc/panda/panda_harvester.cfg, /opt/panda/etc/panda/panda_harvester.cfg, /opt/panda/usr/etc/panda/panda_harvester.cfg; name it with --config',
    ]);
  });
});

describe("the queue file of Harvester's settings", () => {
  const find = (files: Record<string, string | null>, name = 'q.json') =>
    findQueueFile(name, '/srv', atHome, only(files));

  it("the queue file of Harvester's settings is beside them", () => {
    expect(find({ '/srv/q.json': null })).to.deep.equal({ file: '/srv/q.json' });
  });

  it("the queue file of Harvester's settings may have an absolute path", () => {
    expect(find({}, '/a/q.json')).to.deep.equal({ file: '/a/q.json' });
  });

  it('is else where Harvester looks, and a notice says where', () => {
    expect(find({ '/etc/panda/q.json': null, '/opt/panda/etc/panda/q.json': null })).to.deep.equal({
      file: '/opt/panda/etc/panda/q.json',
      problem: {
        severity: 'notice',
        code: 'queue-file-place',
        message:
          'configFile is "q.json": it is not in /srv, so /opt/panda/etc/panda/q.json is read, as by Harvester',
      },
    });
  });

  it('is told apart from another that Harvester would read', () => {
    expect(find({ '/srv/q.json': null, '/etc/panda/q.json': null })).to.deep.equal({
      file: '/srv/q.json',
      problem: {
        severity: 'warning',
        code: 'queue-file-place',
        message:
          'configFile is "q.json", and thresher reads /srv/q.json, where Harvester reads /etc/panda/q.json; write the path in full',
      },
    });
    expect(find({ '/srv/q.json': '/real', '/etc/panda/q.json': '/real' })).to.deep.equal({
      file: '/srv/q.json',
    });
  });

  it('a missing queue file is reported with all places', () => {
    expect(find({}).problem?.message).to.equal(
      'configFile is "q.json", and there is no such file; looked for /srv/q.json, /opt/panda/etc/panda/q.json, /etc/panda/q.json',
    );
  });
});
