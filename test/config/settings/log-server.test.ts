import { expect } from 'chai';
import { logServerOf } from '../../../src/config/settings/log-server.ts';

const server = { pandaCacheURL: 'https://pandacache.cern.ch:25443/ignored' };
const paths = { pandaCacheURL_W_path: '/server/panda', pandaCacheURL_R_path: '/cache' };
const whole = {
  pandaCacheURL_W: 'https://w.cern.ch:25443/server/panda',
  pandaCacheURL_R: 'https://r.cern.ch/cache',
};

describe('the log cache of [pandacon]', () => {
  for (const [what, pandacon, expected] of [
    [
      'is the server of pandaCacheURL with a path for each purpose, as Harvester has it for Kubernetes',
      { ...server, ...paths, ...whole },
      {
        write: 'https://pandacache.cern.ch:25443/server/panda',
        read: 'https://pandacache.cern.ch:25443/cache',
      },
    ],
    [
      "is the two whole addresses of Harvester's template where the paths are not set",
      { ...server, ...whole },
      { write: whole.pandaCacheURL_W, read: whole.pandaCacheURL_R },
    ],
    ['is none where only one purpose has an address', { pandaCacheURL_R: whole.pandaCacheURL_R }, undefined],
    ['is none where pandaCacheURL is no address', { pandaCacheURL: 'nowhere', ...paths }, undefined],
    ['is none without settings', {}, undefined],
  ] as const) {
    it(what, () => {
      expect(logServerOf({ pandacon })).to.deep.equal(expected);
    });
  }
});
