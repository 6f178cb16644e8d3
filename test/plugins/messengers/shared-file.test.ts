import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { SharedFileMessenger } from '../../../src/plugins/messengers/shared-file/index.ts';
import type { Messenger } from '../../../src/plugins/contracts/index.ts';
import { HangingLane } from '../../support/hanging-lane.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

describe('access points on a file system that hangs', () => {
  let directory: string;
  let lane: HangingLane;
  let places: string[];

  beforeEach(() => {
    directory = temporaryDirectory();
    lane = new HangingLane();
    places = [];
  });

  const messenger = (template: string): Messenger => {
    const files = {
      laneOf: (place: string) => {
        places.push(place);
        return lane;
      },
    };
    return SharedFileMessenger.create({ accessPoint: template }, {
      configDir: directory,
      files,
    } as never) as Messenger;
  };

  it('hole 8: are made in its lane alone, and their workers learn why there is none', async () => {
    const path = join(directory, 'a/1');
    const made = messenger(join(directory, 'a/${workerID}')).setUp([path]);
    await until('the lane is asked', () => lane.waiting === 1);
    lane.giveUp('the file system does not answer');
    const failure = { code: 'access-point-failed', message: 'the file system does not answer' };
    expect([...(await made)]).to.deep.equal([[path, failure]]);
    expect(existsSync(join(directory, 'a'))).to.equal(false);
  });

  it('hole 8: are removed in its lane alone, a few files at a time, and once however often they are to be', async () => {
    const path = join(directory, 'a/17');
    mkdirSync(path, { recursive: true });
    for (let n = 0; n < 100; n++) writeFileSync(join(path, String(n)), '');
    const one = messenger(join(directory, 'a/${workerID}'));
    const removals = [one.remove(path, 17), one.remove(path, 17)];
    for (let calls = 0; existsSync(path); calls++) {
      await until('the lane is asked', () => lane.waiting === 1);
      const before = readdirSync(path).length;
      await lane.next();
      if (existsSync(path)) expect(before - readdirSync(path).length).to.be.at.most(8);
      expect(calls).to.be.below(20);
    }
    await Promise.all(removals);
  });

  for (const [template, path, place] of [
    ['/data/points/${workerID}', '/data/points/7', '/data/points'],
    ['/data/${computingSite}/${workerID}', '/data/Q/7', '/data/Q'],
    ['/data/points', '/data/points', '/data/points'],
    ['/data/new/${workerID}', '/data/earlier/7', '/data/earlier'],
  ] as const)
    it(`hole 8: wait in the lane of the file system of ${path}, where the template is ${template}`, async () => {
      const making = messenger(template).setUp([path]);
      await until('the lane is asked', () => lane.waiting === 1);
      lane.giveUp('the file system does not answer');
      await making;
      expect(places).to.deep.equal([place]);
    });
});
