import { ThresherError } from '../../../worker/errors.ts';
import type { WorkerToStart } from '../../../worker/worker.ts';
import { payloadNotes } from '../../contracts/payload-refusal.ts';
import type { Rendered, RenderedFile } from '../../contracts/rendered.ts';
import type { HTCondorSchedd } from '../schedd.ts';
import { ceName, cesOf } from '../place/ce-list.ts';
import type { HTCondorSubmitterConfig } from '../schema.ts';
import { payloadKeysOf } from '../template/describe.ts';
import { type SubmitTexts, withSample } from './submit-texts.ts';

/** Options that name what goes with a job. */
const named = [
  ...(['executableFile', 'x509UserProxy', 'x509UserProxyAnalysis', 'tokenDir', 'tokenDirAnalysis'] as const),
  ...(['pandaTokenDir', 'pandaTokenKeyPath', 'logDir'] as const),
];

/**
 * The text that `condor_submit` would read for this worker alone. Of several CEs the first is shown.
 * @param config with absolute paths
 * @throws ThresherError `preflight` for a broken template; as the batch would be rejected
 */
export async function renderText(
  texts: SubmitTexts,
  config: HTCondorSubmitterConfig,
  { schedd, queue }: { readonly schedd: HTCondorSchedd; readonly queue: string },
  worker: WorkerToStart,
): Promise<Rendered> {
  const { ces } = cesOf(config);
  const [ce] = ces;
  const template = await texts.template(ce);
  if (Array.isArray(template))
    throw new ThresherError('preflight', template.map(({ message }) => message).join('; '));
  const payload = payloadNotes(worker, payloadKeysOf(template.statements));
  const { description, rejected } = texts.describe(schedd, template, [withSample(template, worker)], ce);
  const [refusal] = rejected.values();
  if (refusal !== undefined) {
    const code = refusal.code === 'htcondor-payload' ? refusal.code : 'htcondor-value';
    throw new ThresherError(code, refusal.message);
  }
  const files = named.flatMap((role): RenderedFile[] => {
    const path = config[role];
    return path === undefined ? [] : [{ role, path }];
  });
  const others = ces.slice(1).map(ceName);
  const notes =
    ce === undefined || others.length === 0
      ? []
      : [`${queue} has ${ces.length} CEs; this is for ${ceName(ce)}, and others are ${others.join(', ')}`];
  return {
    format: 'sdf',
    document: description,
    environment: template.environment,
    files: [{ role: 'template', path: template.file }, ...files],
    notes: [...notes, ...payload],
  };
}
