import type { Command } from 'commander';
import { isoTime } from '../util/clock.ts';
import { askDaemon } from './ask-daemon.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';
import { type OutputFormat, outputOption, printJson, printTable } from './output.ts';

export function addOrphans(command: Command, environment: Environment): void {
  command
    .option('--remove', 'list again, and end and remove them')
    .addOption(outputOption())
    .action(async ({ remove, output }: { remove?: true; output: OutputFormat }) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      if (remove) {
        await askDaemon(options, environment, { kind: 'sweep', orphans: true });
        return;
      }
      const orphans = await withStore(options, 'read', ({ store }) => store.orphans.all());
      const views = orphans.map(({ workerId, queue, seenTime, ...rest }) => ({
        ...rest,
        workerID: workerId,
        queueName: queue,
        seenTime: isoTime(seenTime),
      }));
      if (output === 'json') {
        printJson(environment.out, views);
        return;
      }
      printTable(
        environment.out,
        [
          { title: 'WORKERID', value: ({ workerID }) => workerID },
          { title: 'QUEUE', value: ({ queueName }) => queueName },
          { title: 'PLACE', value: ({ place }) => place },
          { title: 'SEEN', value: ({ seenTime }) => seenTime },
          { title: 'WHY', value: ({ why }) => why },
        ],
        views,
      );
    });
}
