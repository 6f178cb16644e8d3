import { join, resolve } from 'node:path';
import { commonParts, type DefinitionProblem } from '../../plugins/contracts/index.ts';
import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import { htcJobSource } from '../../clients/htcjob/resource.ts';
import { clientOf } from '../../clients/htcjob/client.ts';
import { addedNameProblems } from '../../clients/htcondor/submit-names.ts';
import { ImageJobs } from './job/image-jobs.ts';
import { readEventKey } from './job/token.ts';
import { HtcJobOperator, type OutputOptions } from './operator.ts';
import { OutputPlace } from './output/place.ts';
import type { OperatorFiles } from '../../util/operator-files.ts';
import { HtcJobOptions, HtcJobQueueOptions } from '../../clients/htcjob/options.ts';

function outputsIn(root: string, options: HtcJobOptions, files: OperatorFiles): OutputOptions {
  const { maxOutputMegabytes, maxOutputFiles } = options;
  const onFiles: OutputOptions['onFiles'] = (what, work) => files.run(root, what, work);
  const bounds = { bytes: maxOutputMegabytes * 1e6, files: maxOutputFiles };
  return { place: new OutputPlace(root, onFiles), onFiles, bounds };
}

/** A Lease goes with its namespace, and none can be made there again: the HTCJobs of all other namespaces would wait for ever. */
function leaseProblems({ namespaces, leaseNamespace }: HtcJobOptions): readonly DefinitionProblem[] {
  if (namespaces.length === 0) return [];
  const remedy = 'name a namespace that users cannot delete, as the one where thresher runs';
  const wrong = (why: string): readonly DefinitionProblem[] => [
    { pointer: '/leaseNamespace', code: 'wrong-type', message: `${why}: ${remedy}` },
  ];
  if (leaseNamespace === undefined)
    return wrong('leaseNamespace is missing, which namespaces needs beside it');
  if (!namespaces.includes(leaseNamespace)) return [];
  return wrong(
    `leaseNamespace is "${leaseNamespace}", one of namespaces, and no HTCJob goes on once that is deleted`,
  );
}

/** Runs the HTCJobs of a Kubernetes cluster. */
export const HtcJobSource = defineSource({
  name: htcJobSource,
  module: builtInSources,
  description:
    'Runs the jobs of HTCJobs, resources of a Kubernetes cluster, and keeps their status ([htcjob.md](htcjob.md)). A HTCJob runs on a queue with `"demand": "htcjob"` alone.',
  runsJobs: true,
  payload: commonParts,
  config: HtcJobOptions,
  queueConfig: HtcJobQueueOptions,
  check: async (options, { configDir, files }) => {
    const { outputDir, submitCommands } = options;
    const found = [...leaseProblems(options), ...addedNameProblems(submitCommands)];
    if (outputDir === undefined) return found;
    const root = resolve(configDir, outputDir);
    const place = new OutputPlace(root, (what, work) => files.run(root, what, work));
    const trouble = await place.trouble();
    if (trouble === undefined) return found;
    const message = `the directory ${root} of outputDir cannot be used (${trouble}): make it, or mount it`;
    // It may be mounted later: outputs wait for it.
    return [...found, { pointer: '/outputDir', severity: 'warning', code: 'file-unreadable', message }];
  },
  create: (options, host) => {
    const { factoryId, configDir, stateDir } = host;
    const { eventsUrl: url, eventKeyFile, runtime, binds, outputDir, submitCommands } = options;
    const { runtimes, imagePaths } = options;
    const client = clientOf(options, { ...host, userAgent: `thresher/${factoryId}` });
    const keyFile =
      eventKeyFile === undefined ? join(stateDir, 'htcjob/event.key') : resolve(configDir, eventKeyFile);
    const key = url === undefined ? undefined : readEventKey(keyFile, eventKeyFile === undefined);
    const events = url === undefined || key === undefined ? undefined : { url, key };
    const root = outputDir === undefined ? undefined : resolve(configDir, outputDir);
    const outputs = root === undefined ? undefined : outputsIn(root, options, host.files);
    const maker = new ImageJobs({
      runtimes,
      imagePaths,
      binds,
      runtime,
      submitCommands,
      events,
      outputBytes: outputs?.bounds.bytes,
    });
    return new HtcJobOperator(options, client, maker, host, key, outputs);
  },
});
