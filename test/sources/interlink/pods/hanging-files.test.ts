import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { bounds } from '../../../../src/sources/interlink/bounds.ts';
import { PodFiles } from '../../../../src/sources/interlink/pods/pod-files.ts';
import { HangingLane } from '../../../support/hanging-lane.ts';
import { rejection } from '../../../support/kubernetes-client.ts';
import { recordingLog } from '../../../support/samples.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { until } from '../../../support/until.ts';

const uidOf = (n: number) => `00000000-0000-0000-0000-${String(n).padStart(12, '0')}`;

describe('files of Pods of interLink on a file system that hangs', () => {
  let root: string;
  let lane: HangingLane;
  let log: ReturnType<typeof recordingLog>;
  let files: PodFiles;

  beforeEach(() => {
    root = temporaryDirectory();
    lane = new HangingLane();
    log = recordingLog();
    files = new PodFiles(root, log, lane);
    for (const n of [1, 2, 3]) mkdirSync(join(root, 'output', uidOf(n)), { recursive: true });
    mkdirSync(join(root, 'pods'));
  });

  it('hole 8: are looked at in its lane alone, and one that could not be read does not count as missing', async () => {
    const look = () => Promise.all([1, 2, 3].map((n) => files.reportSince(uidOf(n))));
    const refused = look().catch((error: unknown) => error);
    await until('the lane is asked', () => lane.waiting === 3);
    lane.giveUp('no answer');
    expect(await refused).to.include({ code: 'file-timeout' });
    for (const call of [files.lastWords(uidOf(1)), files.wipe(uidOf(1))]) {
      lane.giveUp('no answer');
      expect(await rejection(call)).to.include({ code: 'file-timeout' });
    }
    expect(log.lines).to.deep.equal([]);
    for (const n of [1, 2, 3]) writeFileSync(join(root, 'output', uidOf(n), 'pod-status.json'), '{}');
    const reports = look();
    while (lane.waiting > 0) await lane.next();
    expect((await reports).map((report) => report?.text)).to.deep.equal(['{}', '{}', '{}']);
  });

  it('hole 8: a body that does not come in time is told from one that is damaged: the others are not tried', async () => {
    const body = files.body(uidOf(1));
    lane.giveUp('no answer');
    expect(await rejection(body)).to.include({ code: 'file-timeout' });
    writeFileSync(join(root, 'pods', `${uidOf(1)}.json`), '{');
    const damaged = files.body(uidOf(1));
    await lane.next();
    expect(await rejection(damaged)).to.include({ code: 'interlink-files' });
  });

  it('hole 8: are written in its lane alone: while a write that was given up is under way, no other change of it begins', async () => {
    const record = (acceptedAt: number) => ({ uid: uidOf(1), acceptedAt }) as never;
    const file = join(root, 'pods', `${uidOf(1)}.json`);
    const first = files.save(record(1));
    await until('the lane is asked', () => lane.waiting === 1);
    expect(existsSync(file)).to.equal(false);
    const late = lane.next();
    const second = rejection(files.save(record(2)));
    await lane.next();
    expect(await second)
      .to.include({ code: 'interlink-files' })
      .and.property('message')
      .contains('earlier change');
    await Promise.all([late, first]);
    const again = files.save(record(2));
    await lane.next();
    await again;
    expect(JSON.parse(readFileSync(file, 'utf8'))).to.include({ acceptedAt: 2 });
    const third = files.save(record(3));
    lane.giveUp('no answer');
    expect(await rejection(third)).to.include({ code: 'interlink-files' });
  });
});

describe('the output directory of a Pod of interLink', () => {
  it('shows a job by what it left, and by nothing that a file server put there', async () => {
    const root = temporaryDirectory();
    const pods = new PodFiles(root, recordingLog(), { run: (_what, call) => call() });
    const directory = join(root, 'output', uidOf(1));
    expect(await pods.hasOutput(uidOf(1)), 'there is none').to.equal(false);
    mkdirSync(directory, { recursive: true });
    expect(await pods.hasOutput(uidOf(1)), 'it is empty').to.equal(false);
    mkdirSync(join(directory, '.snapshot'));
    writeFileSync(join(directory, '.nfs000000000001'), '');
    expect(await pods.hasOutput(uidOf(1))).to.equal(false);
    writeFileSync(join(directory, '.job.log'), '');
    expect(await pods.hasOutput(uidOf(1))).to.equal(true);
  });
});

describe('the report of a Pod of interLink', () => {
  it('is read up to its bound, also when it grows between the look at its length and the reading', async () => {
    const root = temporaryDirectory();
    const log = recordingLog();
    const pods = new PodFiles(root, log, { run: (_what, call) => call() });
    const file = join(root, 'output', uidOf(1), 'pod-status.json');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '');
    const handle = await open(file);
    const prototype = Object.getPrototypeOf(handle) as FileHandle;
    await handle.close();
    // eslint-disable-next-line @typescript-eslint/unbound-method -- it is put back, and called with its own `this`
    const { stat } = prototype;
    prototype.stat = async function (this: FileHandle, ...given: readonly unknown[]) {
      const found = (await Reflect.apply(stat, this, given)) as never;
      if (++looks === 2) writeFileSync(file, 'x'.repeat(2 * bounds.reportBytes));
      return found;
    };
    let looks = 0;
    try {
      expect(await pods.reportSince(uidOf(1))).to.equal(undefined);
    } finally {
      prototype.stat = stat;
    }
    expect(looks).to.equal(2);
    writeFileSync(file, '{}');
    expect(await pods.reportSince(uidOf(1))).to.include({ text: '{}' });
    expect(log.lines).to.deep.equal([]);
  });
});
