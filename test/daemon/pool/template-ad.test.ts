import { expect } from 'chai';
import { readAds, textIn, writeAd } from '../../../src/clients/htcondor/ad-lines.ts';
import { templateOf } from '../../../src/daemon/pool/template-ad.ts';

/** The slot of a worker in use, with GPUs, as HTCondor 23.9 writes it. */
const busy = `
Activity = "Idle"
AssignedGPUs = "GPU-c4a646d7,GPU-6a96bd13"
AvailableGPUs = { GPUs_GPU_6a96bd13 }
ChildCpus = { 1,1 }
ClockMin = 526
Cpus = 2
DaemonStartTime = 1795423018
Disk = 76164316
EnteredCurrentState = 1795423018
FileSystemDomain = "thresher-7.pods.example.org"
GPUs = 1
GPUs_GPU_6a96bd13 = [ Id = "GPU-6a96bd13"; Capability = 8.0 ]
GPUs_GPU_c4a646d7 = [ Id = "GPU-c4a646d7"; Capability = 8.0 ]
HasOurSoftware = true
HtcondorPoolInstance = "4b2e51c7"
LastHeardFrom = 1795423619
LoadAvg = 1.0
Machine = "thresher-7.pods.example.org"
MachineResources = "Cpus Memory Disk Swap GPUs"
Memory = 3840
MyAddress = "<127.0.0.1:38071>"
Name = "slot1@thresher-7.pods.example.org"
NumDynamicSlots = 2
PartitionableSlot = true
Requirements = START && (WithinResourceLimits)
SlotType = "Partitionable"
Start = true
State = "Unclaimed"
ThresherQueue = "Q"
ThresherWorker = "7"
TotalDisk = 76168412
TotalSlotCpus = 4
TotalSlotDisk = 76168412.5
TotalSlotGPUs = 2
TotalSlotMemory = 4096
UtsnameNodename = "thresher-7"
WithinResourceLimits = (MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus)
`;

function slot(change: Readonly<Record<string, string | undefined>> = {}) {
  const [read] = readAds(busy);
  const ad = new Map(read);
  for (const [name, expression] of Object.entries(change)) {
    if (expression === undefined) ad.delete(name);
    else ad.set(name, expression);
  }
  return ad;
}

function learnt(change?: Readonly<Record<string, string | undefined>>) {
  const found = templateOf(slot(change));
  if ('unfit' in found) throw new Error(found.unfit);
  return found;
}

function refusal(change: Readonly<Record<string, string | undefined>>): string {
  const found = templateOf(slot(change));
  return 'unfit' in found ? found.unfit : 'none';
}

describe('template ad', () => {
  it('has the whole machine, though jobs run on the half of it', () => {
    const { ad, resources } = learnt();
    expect(Object.fromEntries(resources)).to.deep.equal({ Cpus: 4, Memory: 4096, Disk: 76_100_000, GPUs: 2 });
    for (const [name, amount] of resources) expect(ad.get(name)).to.equal(String(amount));
    expect(ad.get('AvailableGPUs')).to.equal('{ GPUs_GPU_c4a646d7,GPUs_GPU_6a96bd13 }');
    expect(ad.get('NumDynamicSlots')).to.equal('0');
  });

  it('has nothing of times, loads, addresses, jobs and the worker itself, and all that the pool says of the machine', () => {
    const names = [...learnt().ad.keys()];
    expect(names).not.to.include.members(['ThresherWorker']);
    for (const gone of ['ClockMin', 'LoadAvg', 'MyAddress', 'ChildCpus', 'DaemonStartTime', 'LastHeardFrom'])
      expect(names).not.to.include(gone);
    expect(names).to.include.members([
      'HasOurSoftware',
      'ThresherQueue',
      'Requirements',
      'WithinResourceLimits',
    ]);
  });

  it('names no Pod, and keeps its domain', () => {
    const { ad } = learnt();
    expect(textIn(ad, 'Name')).to.equal('slot1@thresher-template.pods.example.org');
    expect(textIn(ad, 'FileSystemDomain')).to.equal('thresher-template.pods.example.org');
    expect(textIn(ad, 'UtsnameNodename')).to.equal('thresher-template');
  });

  it('is the same text whenever it is learnt, in whatever order the attributes come', () => {
    const later = slot({
      ClockMin: '3',
      LoadAvg: '0.2',
      Cpus: '4',
      NumDynamicSlots: '0',
      UpdatesTotal: '9',
      // Another container, and a little more lies on the disk.
      HtcondorPoolInstance: '"9d0e6a44"',
      TotalDisk: '76120000',
      TotalSlotDisk: '76120000.0',
    });
    const reversed = new Map([...later].toReversed());
    const found = templateOf(reversed);
    expect('ad' in found && writeAd(found.ad)).to.equal(writeAd(learnt().ad));
    const [again] = readAds(writeAd(learnt().ad));
    expect(again?.size).to.equal(learnt().ad.size);
  });

  const disks = [
    ['0', 0],
    ['7.5', 7],
    ['999', 999],
    ['10239488.0', 10_200_000],
    ['419430400', 419_000_000],
  ] as const;
  for (const [free, kept] of disks)
    it(`keeps three digits of a disk of ${free} KiB, rounded down`, () => {
      expect(learnt({ TotalSlotDisk: free }).resources.get('Disk')).to.equal(kept);
    });

  for (const [what, change, says] of [
    ['a dynamic slot', { DynamicSlot: 'true', SlotType: '"Dynamic"' }, /is a dynamic slot.*name its startd/],
    ['a claimed static slot', { PartitionableSlot: 'false', State: '"Claimed"' }, /static slot and claimed/],
    [
      'a static slot',
      { PartitionableSlot: undefined },
      /is a static slot: a worker of thresher has one part/,
    ],
    ['a machine that drains', { Draining: 'true' }, /drains: learn from a worker that takes jobs/],
    ['a machine that is offline', { Offline: 'true' }, /is offline/],
    ['a slot without its size', { TotalSlotMemory: undefined }, /says nothing of TotalSlotMemory/],
    [
      'a slot with an undescribed GPU',
      { GPUs_GPU_c4a646d7: undefined },
      /does not describe each of its GPUs/,
    ],
  ] as const)
    it(`is not made of ${what}, with what would be right`, () => {
      expect(refusal(change)).to.match(says);
    });

  it('names what START hangs on and a template cannot have, through other attributes and with MY', () => {
    const { missing } = learnt({
      Start: 'Healthy && TARGET.LoadAvg < 1 && "ClockMin" != x',
      Healthy: 'MY.LoadAvg < 10 && (time() - DaemonStartTime) < 100',
    });
    expect(missing).to.have.members(['LoadAvg', 'DaemonStartTime']);
    expect(learnt().missing).to.deep.equal([]);
  });
});

describe('long form of ads', () => {
  it('refuses an answer that was cut off', () => {
    expect(() => readAds('A = 1\nB')).to.throw(SyntaxError, /line 2 is no attribute/);
    expect(() => readAds('A = ')).to.throw(SyntaxError);
  });

  it('tells ads apart by empty lines', () => {
    expect(readAds('\nA = 1\n\n\nA = "x = y"\n').map((ad) => ad.get('A'))).to.deep.equal(['1', '"x = y"']);
    expect(readAds('')).to.deep.equal([]);
  });
});
