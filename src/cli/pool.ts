import type { Command } from 'commander';
import type { Environment } from './environment.ts';
import { addInit } from './pool-init.ts';
import { addLearn } from './pool-learn.ts';
import { addManifests } from './pool-manifests.ts';
import { addScale } from './pool-scale.ts';
import { addPoolStatus } from './pool-status.ts';
import { addToken } from './pool-token.ts';
import { addUnservable } from './pool-unservable.ts';

/** A HTCondor pool on Kubernetes; a file per subcommand. */
export function addPool(command: Command, environment: Environment): void {
  addInit(command, environment);
  addManifests(command, environment);
  addToken(command, environment);
  addPoolStatus(command, environment);
  addScale(command, environment);
  addLearn(command, environment);
  addUnservable(command, environment);
}
