import { defineInterlink } from './define.ts';
import type { MakePlanner } from './make-sidecar.ts';
import type { InterlinkOptions } from './options.ts';
import { asOperatorSays, withDummy } from './operator.ts';
import { isPlan, type PlanContext, planOf } from './pod/plan.ts';

/** Runs the Pods of interLink. */
export const InterlinkSource = defineInterlink((...given) => podPlanner(...given));

/** Each container runs by apptainer, as the operator allows it. */
const podPlanner: MakePlanner = (options, reportTo) => {
  const context = { ...contextOf(options), ...(reportTo !== undefined && { reportTo }) };
  return (data) => {
    const { pod, left } = asOperatorSays(data.pod, options);
    const made = planOf({ ...data, pod }, context);
    if (!isPlan(made)) return made.map(({ at, message }) => `${at}: ${message}`);
    const plan = withDummy({ ...made, warnings: [...made.warnings, ...left] }, pod, options.dummySeconds);
    if (options.htcondor) return plan;
    const { files, argv, env, values } = plan.payload;
    const payload = {
      ...(files && { files }),
      ...(argv && { argv }),
      ...(env && { env }),
      ...(values && { values }),
    };
    return { ...plan, payload };
  };
};

function contextOf(options: InterlinkOptions): PlanContext {
  const { runtime, runtimeOptions, hostPaths, imagePaths, imageCache, commandPrefix, exportPodData } =
    options;
  return {
    runtime,
    options: runtimeOptions,
    hostPaths,
    imagePaths,
    ...(imageCache !== undefined && { imageCache }),
    readOnlyImages: options.readOnlyImages,
    host: options.allowHost,
    preExec: options.allowPreExec,
    jobScript: options.allowJobScript,
    commandPrefix,
    exportPodData,
    submitCommands: options.submitCommands,
    logBytes: options.logBytes,
  };
}
