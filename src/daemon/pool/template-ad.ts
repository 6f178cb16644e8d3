import { type AdLines, attribute, isTrue, numberIn, textIn } from '../../clients/htcondor/ad-lines.ts';

/** Host that a template ad names. Patterns over names of machines see a name, and never the Pod that was learnt from. */
const neutralHost = 'thresher-template';

/**
 * Attributes that tell of one startd at one moment. The rest is what the jobs of an empty worker see, `STARTD_ATTRS` of the pool
 * among it. Seen with 23.9.6.
 */
const volatile: readonly RegExp[] = [
  // When.
  /^(Clock(Day|Min)|MyCurrentTime|Daemon(Start|LastReconfig)Time|Last(HeardFrom|Benchmark|FetchWork\w*|Drain\w*|Update\w*))$/,
  /^(EnteredCurrent\w*|Expected\w*|NextFetchWorkDelay|TotalTime\w*|NumDynamicSlotsTime|RetirementTimeRemaining)$/,
  // How much.
  /^((Total|Condor|TotalCondor)?LoadAvg|CpuBusy\w*|ConsoleIdle|KeyboardIdle|\w*DaemonCoreDutyCycle|MonitorSelf\w*|(Total)?VirtualMemory)$/,
  /^(Updates\w*|UpdateSequenceNumber|NumPids|Recent\w*|\w+Preemptions|JobStarts|ActivationRequests|ClaimRequests|NewDSlotNotMatch)$/,
  /^((Device\w+|CPUs|Memory|Disk|GPUs)(Average)?Usage|\w+PeakUsage)$/i,
  // Where, and who speaks.
  /^(MyAddress|AddressV1|StartdIpAddr|PublicNetworkIpAddr|PrivateNetwork\w*|HardwareAddress|SubnetMask|AuthenticatedIdentity|AuthenticationMethod)$/,
  // Which jobs run there.
  /^(Child\w+|NumDynamicSlots|CurrentRank|Claim\w+|PublicClaimId\w*|Remote\w+|Client\w+|Global?JobId|JobId|JobStart|State|Activity|TotalClaim\w*|TotalJob\w*|TotalSlots)$/,
  /^(AccountingGroup|AccountingName|Concurrency\w*|PreemptingOwner|PreemptingUser|PreemptingRank)$/,
  // Whether it drains.
  /^(Drain\w*|AcceptedWhileDraining|TotalMachineDraining\w*)$/,
  // Which worker, and which of its containers it is.
  /^(ThresherWorker|THRESHER_WORKER|HtcondorPoolInstance)$/i,
];

/** Resources that have no amount of one slot: all slots share them. */
const shared = new Set(['swap']);

export interface LearntTemplate {
  readonly ad: AdLines;
  /** Name of the slot that it was taken from. */
  readonly from: string;
  /** What an empty worker has, by the names of HTCondor. */
  readonly resources: ReadonlyMap<string, number>;
  /** Attributes that START refers to, or which it refers to in turn, and that a template cannot have. */
  readonly missing: readonly string[];
}

/** Why a slot cannot stand for an empty worker, with what would be right. */
export interface Unfit {
  readonly unfit: string;
}

/** The ad of an empty worker, from that of a slot as it is now. */
export function templateOf(slot: AdLines): LearntTemplate | Unfit {
  const from = textIn(slot, 'Name') ?? 'a slot without a name';
  const unfit = whyUnfit(slot);
  if (unfit !== undefined) return { unfit: `${from} ${unfit}` };
  const ad = new Map([...slot].filter(([name]) => !volatile.some((pattern) => pattern.test(name))));
  const resources = new Map<string, number>();
  for (const name of resourcesOf(slot)) {
    const total = numberIn(slot, `TotalSlot${name}`);
    if (total === undefined) {
      if (shared.has(name.toLowerCase())) continue;
      return { unfit: `${from} says nothing of TotalSlot${name}: HTCondor 8.9 or newer says it` };
    }
    const amount = amountOf(name, total);
    resources.set(name, amount);
    put(ad, name, String(amount));
    if (name === 'Disk') for (const whole of wholeDisk) if (has(ad, whole)) put(ad, whole, String(amount));
    const devices = devicesOf(slot, name);
    if (devices === undefined) continue;
    if (!devices.every((device) => attribute(slot, device) !== undefined))
      return {
        unfit: `${from} does not describe each of its ${name}: learn from it again while no job runs there`,
      };
    put(ad, `Available${name}`, `{ ${devices.join(',')} }`);
  }
  renameHost(ad, slot);
  put(ad, 'State', '"Unclaimed"');
  put(ad, 'Activity', '"Idle"');
  put(ad, 'NumDynamicSlots', '0');
  return { ad, from, resources, missing: missingIn(ad, slot) };
}

function whyUnfit(slot: AdLines): string | undefined {
  if (isTrue(slot, 'DynamicSlot') || textIn(slot, 'SlotType') === 'Dynamic')
    return 'is a dynamic slot, which has what one job asked for: name its startd';
  if (!isTrue(slot, 'PartitionableSlot')) {
    const claimed = textIn(slot, 'State') === 'Unclaimed' ? '' : ' and claimed';
    return `is a static slot${claimed}: a worker of thresher has one partitionable slot (SLOT_TYPE_1_PARTITIONABLE = True)`;
  }
  if (isTrue(slot, 'Offline')) return 'is the ad of a machine that is offline: learn from one that runs';
  if (isTrue(slot, 'Draining')) return 'drains: learn from a worker that takes jobs';
  return undefined;
}

function resourcesOf(slot: AdLines): string[] {
  const named = (textIn(slot, 'MachineResources') ?? '').split(/[\s,]+/).filter((name) => name !== '');
  return [
    ...new Set(['Cpus', 'Memory', 'Disk', ...named.filter((name) => !/^(cpus|memory|disk)$/i.test(name))]),
  ];
}

/** Other attributes that say how much disk an empty worker has. */
const wholeDisk = ['TotalSlotDisk', 'TotalDisk'];

/**
 * Disk comes as a real number. It is what was free at one moment, so that three digits of it are kept, rounded down: a machine that
 * has a little less next time must not look too large now.
 */
function amountOf(name: string, total: number): number {
  if (name !== 'Disk') return Math.floor(total);
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, total))) - 2);
  return Math.floor(total / step) * step;
}

const has = (ad: AdLines, name: string) => attribute(ad, name) !== undefined;

/** Attributes that describe the devices of a resource: `GPUs_GPU_c4a646d7` for the device `GPU-c4a646d7`. */
function devicesOf(slot: AdLines, resource: string): string[] | undefined {
  if (attribute(slot, `Available${resource}`) === undefined) return undefined;
  const assigned = (textIn(slot, `Assigned${resource}`) ?? '').split(/[\s,]+/).filter((id) => id !== '');
  return assigned.map((id) => `${resource}_${id.replaceAll(/\W/g, '_')}`);
}

/** The name of the Pod says nothing of the next one. Its domain stays, because requirements ask for it. */
function renameHost(ad: Map<string, string>, slot: AdLines): void {
  const machine = textIn(slot, 'Machine') ?? '';
  const [short = ''] = machine.split('.');
  const fresh = `${neutralHost}${machine.slice(short.length)}`;
  put(ad, 'Machine', `"${fresh}"`);
  put(ad, 'Name', `"slot1@${fresh}"`);
  for (const [name, expression] of ad) {
    if (short === '' || name === 'Machine' || name === 'Name') continue;
    if (expression === `"${machine}"`) ad.set(name, `"${fresh}"`);
    else if (expression === `"${short}"`) ad.set(name, `"${neutralHost}"`);
  }
}

/** Whether a worker takes a job must not hang on an attribute that only a running startd has. */
function missingIn(ad: AdLines, slot: AdLines): string[] {
  const missing = new Set<string>();
  const seen = new Set<string>();
  const follow = (name: string) => {
    if (seen.has(name.toLowerCase())) return;
    seen.add(name.toLowerCase());
    const kept = attribute(ad, name);
    if (kept === undefined) {
      if (attribute(slot, name) !== undefined) missing.add(name);
      return;
    }
    const own = kept
      // Only a string with an end is removed. The rest of an unclosed one is read once, not anew at each quotation mark in it.
      .replaceAll(/"(?:[^"\\]|\\.)*("?)/g, (whole, end) => (end === '' ? whole : ''))
      .replaceAll(/\bTARGET\s*\.\s*\w+/gi, '')
      .replaceAll(/\bMY\s*\.\s*/gi, '');
    for (const [reference] of own.matchAll(/[A-Za-z_]\w*/g)) follow(reference);
  };
  follow('Requirements');
  follow('Start');
  return [...missing];
}

/** Under the name that the ad has it by. */
function put(ad: Map<string, string>, name: string, expression: string): void {
  const own = [...ad.keys()].find((other) => other.toLowerCase() === name.toLowerCase());
  ad.set(own ?? name, expression);
}
