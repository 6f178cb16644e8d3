import type { Command } from 'commander';
import { daemonOn } from '../daemon/reader.ts';
import { queueViews } from '../daemon/view.ts';
import { isoTime } from '../util/clock.ts';
import { fromOutside, withoutOwn } from '../util/own-secrets.ts';
import { askDaemon } from './ask-daemon.ts';
import type { Environment, GlobalOptions } from './environment.ts';
import { withStore } from './opened.ts';
import { type OutputFormat, outputOption, printJson, printTable } from './output.ts';

export function addOrphans(command: Command, environment: Environment): void {
  command
    .option('--remove', 'list again, then end and remove them')
    .addOption(outputOption())
    .action(async ({ remove, output }: { remove?: true; output: OutputFormat }) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      if (remove) {
        await askDaemon(options, environment, { kind: 'sweep', orphans: true });
        return;
      }
      const { orphans, notes } = await withStore(options, 'read', async ({ store, dir }) => ({
        orphans: await store.orphans.all(),
        notes: (await queueViews(store, await daemonOn(store, dir)))
          .flatMap(({ reasons }) => reasons)
          .filter(({ code }) => code === 'factory-shared')
          .map(({ message }) => message),
      }));
      // The daemon adopts workers of another daemon of this factory, so they are no orphans.
      for (const message of new Set(notes))
        environment.err.write(`thresher: warning: ${message} [factory-shared]\n`);
      const views = orphans.map(({ workerId, queue, seenTime, place, why, ...rest }) => ({
        ...rest,
        place: withoutOwn(place),
        why: fromOutside(why),
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
