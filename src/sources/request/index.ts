import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import Type from '../../util/type.ts';
import { commonParts } from '../../worker/payload.ts';
import { operatorKind } from '../../worker/operator-request.ts';
import { OperatorSource } from './source.ts';

/** Asks for the workers that operators want, by `thresher submit` and `POST /api/requests`. */
export const RequestSource = defineSource({
  name: operatorKind,
  module: builtInSources,
  description:
    'Asks for the workers that operators want, by `thresher submit` and `POST /api/requests`, before the own source of the queue. A queue with `"demand": "request"` gets these workers alone.',
  everyQueue: true,
  perQueue: true,
  payload: commonParts,
  config: Type.Object({}),
  create: (_, { requests }) => {
    if (requests === undefined) throw new TypeError('the source of operators has no requests to read');
    return new OperatorSource(requests);
  },
});
