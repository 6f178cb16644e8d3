import { addedNameProblems, namesBeyondLists } from '../../clients/htcondor/submit-names.ts';
import { commonParts, type SourceDefinition } from '../../plugins/contracts/index.ts';
import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import { interlinkSource } from '../../clients/interlink/source-name.ts';
import { type MakePlanner, makeSidecar } from './make-sidecar.ts';
import { InterlinkOptions } from './options.ts';
import { powerProblems } from './pod/options.ts';

/** The source with another way to make Pods jobs. */
export function defineInterlink(makePlanner: MakePlanner, name: string = interlinkSource): SourceDefinition {
  return defineSource({
    name,
    module: builtInSources,
    description:
      'Runs Kubernetes Pods that interLink sends, one job for each ([interlink.md](interlink.md)). They run on a queue with `"demand": "interlink"`.',
    runsJobs: true,
    payload: commonParts,
    config: InterlinkOptions,
    check: ({ submitCommands, runtimeOptions }) => [
      ...addedNameProblems(namesBeyondLists(submitCommands)),
      ...powerProblems(runtimeOptions),
    ],
    create: (options, host) => makeSidecar(options, makePlanner, host),
  });
}
