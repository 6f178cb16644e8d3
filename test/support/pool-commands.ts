import { expect } from 'chai';
import { type CommandResult, runHere } from './command-line.ts';
import { type ControlPlane, type Namespace } from './kubernetes.ts';
import { temporaryDirectory } from './temporary.ts';
import { join } from 'node:path';

/** `thresher pool`, for one namespace of a cluster. */
export class PoolCommands {
  readonly directory = temporaryDirectory();
  readonly space: Namespace;
  readonly #kubeconfig: string;

  constructor(plane: ControlPlane, space: Namespace) {
    this.space = space;
    this.#kubeconfig = join(this.directory, 'kubeconfig');
    plane.writeKubeconfig(this.#kubeconfig);
  }

  run(...args: string[]): Promise<CommandResult> {
    const place = ['--kubeconfig', this.#kubeconfig, '--namespace', this.space.name];
    const [command = '', ...more] = args;
    return runHere('pool', command, ...place, ...more);
  }

  /** The last column of a table by kind and name; the command must do well. */
  async outcomes(...args: string[]): Promise<Record<string, string>> {
    const { status, stdout, stderr } = await this.run(...args);
    expect(status, stderr).to.equal(0);
    const table = stdout.slice(stdout.indexOf('KIND '));
    const rows = table.trim().split('\n').slice(1);
    return Object.fromEntries(
      rows
        .map((row) => row.split(/\s+/))
        .map(([kind = '', name = '', outcome = '']) => [`${kind} ${name}`, outcome]),
    );
  }
}
