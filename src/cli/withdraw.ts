import type { Command } from 'commander';
import { daemonOn } from '../daemon/reader.ts';
import { livingOf } from '../daemon/requests/request-view.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';
import { findRequest } from './requests.ts';

export function addWithdraw(command: Command, environment: Environment): void {
  command
    .argument('<request>', 'id of a request')
    .option('--reason <text>', 'why, for those who look later', 'withdrawn by an operator')
    .action(async (id: string, { reason }: { reason: string }) => {
      await withStore(command.optsWithGlobals<GlobalOptions>(), 'write', async ({ store, dir }) => {
        await findRequest(store, id);
        const done = await store.requests.withdraw(id, reason, environment.clock.now());
        const record = await findRequest(store, id);
        const living = livingOf(record);
        const ends = living === 0 ? 'it has no living workers' : `${living} of its workers are being ended`;
        const later =
          living > 0 && (await daemonOn(store, dir)) === undefined
            ? ' when a daemon starts: none is running'
            : '';
        const before =
          record.withdrawnTime === null ? 'is over: it has had its workers' : 'was withdrawn before';
        environment.out.write(`request ${id} ${done ? `is withdrawn: ${ends}${later}` : before}\n`);
      });
    });
}
