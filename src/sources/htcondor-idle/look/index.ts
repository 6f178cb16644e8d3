export { PoolLooker, type PoolLookerParts } from './looker.ts';
