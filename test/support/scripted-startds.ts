import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from './temporary.ts';

/** What a startd of this pool is doing. */
export interface ScriptedStartd {
  readonly busyCores?: number;
  /** Of the machine, s. */
  readonly retirement?: number;
  /** What its job has left, s: the lesser of the machine's and its own. Default: the machine's. */
  readonly jobRetirement?: number;
}

/**
 * A pool whose `condor_status` and `condor_drain` are scripts over a directory with a file for each startd. They say and refuse what
 * the real ones do (seen: 23.9).
 */
export class ScriptedStartds {
  readonly programs: string;
  readonly #directory: string;
  readonly #questions: string;

  constructor() {
    const root = temporaryDirectory();
    this.programs = join(root, 'bin');
    this.#directory = join(root, 'startds');
    this.#questions = join(root, 'questions');
    mkdirSync(this.programs);
    mkdirSync(this.#directory);
    this.#write(
      'condor_status',
      `printf '%s\\n' "$*" >>${this.#questions}\ncat ${this.#directory}/*.ad 2>/dev/null; exit 0`,
    );
    this.#write(
      'condor_drain',
      `
what=drain check= reason=
while [ $# -gt 1 ]; do
  case $1 in
    -cancel) what=cancel ;;
    -check) check=$2; shift ;;
    -reason) reason=$2; shift ;;
    -pool) shift ;;
  esac
  shift
done
ad=${this.#directory}/\${1#slot1@}.ad
[ -e "$ad" ] || { echo "ERROR: unknown host $1" >&2; exit 1; }
busy=$(sed -n 's/^BusyCores = //p' "$ad")
left=$(sed -n 's/^RetirementTimeRemaining = //p' "$ad")
case $check in
  '') true=yes ;;
  *RetirementTimeRemaining*) true=$([ "$busy" = 0 ] || [ "$left" -ge 86400 ] && echo yes) ;;
  *) true=$([ "$busy" != 0 ] || echo yes) ;;
esac
if [ $what = cancel ]; then
  sed -i '/^Drain/d; s/^State = "Drained"/State = "Unclaimed"/' "$ad"
elif [ -z "$true" ]; then
  echo "Received failure from $1 in response to DRAIN_JOBS request: error code 10003: Draining check expression is false on slot1_1." >&2
  exit 1
else
  [ "$busy" != 0 ] || sed -i 's/^State = "Unclaimed"/State = "Drained"/' "$ad"
  sed -i "s/^Name = .*/&\\nDraining = true\\nDrainReason = \\"$reason\\"/" "$ad"
fi`,
    );
  }

  /** A startd as it is now; one that drains goes on to. */
  set(
    pod: string,
    { busyCores = 0, retirement = 2_592_000, jobRetirement = retirement }: ScriptedStartd = {},
  ): void {
    const file = this.#file(pod);
    const drains = existsSync(file) ? /^Drain.*$/gm : undefined;
    const kept = drains === undefined ? [] : (readFileSync(file, 'utf8').match(drains) ?? []);
    const state = kept.length > 0 && busyCores === 0 ? 'Drained' : 'Unclaimed';
    const dynamic =
      busyCores === 0
        ? ''
        : `Name = "slot1_1@${pod}"\nMachine = "${pod}"\nSlotType = "Dynamic"\nState = "Claimed"\nCpus = ${busyCores}\nRetirementTimeRemaining = ${jobRetirement}\n\n`;
    const whole = [
      `Name = "slot1@${pod}"`,
      ...kept,
      `Machine = "${pod}"`,
      'SlotType = "Partitionable"',
      'PartitionableSlot = true',
      `State = "${state}"`,
      `BusyCores = ${busyCores}`,
      `MaxJobRetirementTime = ${retirement}`,
      '',
      '',
    ].join('\n');
    writeFileSync(file, `${whole}${dynamic}`);
  }

  /** Arguments of each condor_status. */
  questions(): string[] {
    return readFileSync(this.#questions, 'utf8').trimEnd().split('\n');
  }

  /** The collector writes what is no list of ads. */
  garbleCollector(): void {
    this.#write('condor_status', 'echo "Name: x"');
  }

  /** The collector answers no more. */
  stopCollector(): void {
    this.#write(
      'condor_status',
      'echo "Error: Couldn\'t contact the condor_collector on 127.0.0.1." >&2; exit 1',
    );
  }

  /** Its Pod has gone. */
  remove(pod: string): void {
    rmSync(this.#file(pod), { force: true });
  }

  drains(pod: string): boolean {
    return /^Draining = true$/m.test(readFileSync(this.#file(pod), 'utf8'));
  }

  #file(pod: string): string {
    return join(this.#directory, `${pod}.ad`);
  }

  #write(name: string, body: string): void {
    const path = join(this.programs, name);
    writeFileSync(path, `#!/bin/sh\n${body}\n`);
    chmodSync(path, 0o755);
  }
}
