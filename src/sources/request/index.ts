import Type from 'typebox';
import { builtInSources, defineSource } from '../../plugins/contracts/source.ts';
import { operatorKind } from '../../worker/operator-request.ts';
import { OperatorSource } from './source.ts';

/** Asks for the workers that operators want, by `thresher submit` and `POST /api/requests`. */
export const RequestSource = defineSource({
  name: operatorKind,
  module: builtInSources,
  everyQueue: true,
  config: Type.Object({}),
  create: (_, { requests }) => new OperatorSource(requests),
});
