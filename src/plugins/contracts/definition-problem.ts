import type { ErrorCode } from '../../codes/codes.ts';

/** `pointer` is inside the plugin's section, unless `file` names another file. */
export interface DefinitionProblem {
  readonly pointer: string;
  readonly code: ErrorCode;
  readonly message: string;
  readonly severity?: 'error' | 'warning' | 'notice';
  readonly file?: string;
  readonly line?: number;
}
