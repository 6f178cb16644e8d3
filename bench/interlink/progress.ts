import { progressOf } from '../shared/progress.ts';

export const progress = progressOf('interlink');
