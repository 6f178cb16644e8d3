import type { SchemaProblem } from '../../util/schema.ts';

/** `pointer` is inside the plugin's section, unless `file` names another file. */
export interface DefinitionProblem {
  readonly pointer: string;
  readonly code:
    | SchemaProblem['code']
    | 'file-unreadable'
    | 'syntax'
    | 'template-wrong'
    | 'template-risky'
    | 'unknown-placeholder'
    | 'variable-passed'
    | 'access-point-shared'
    | 'throttler-without-rules'
    | 'throttler-rule-idle'
    | 'unread-option'
    | 'size-not-said'
    | 'ce-list-missing'
    | 'ce-not-from-cric'
    | 'pid-namespace-missing'
    | 'pid-namespace-required'
    | 'credential-targets-missing'
    | 'server-refused'
    | 'server-warned'
    | 'server-unknown';
  readonly message: string;
  readonly severity?: 'error' | 'warning' | 'notice';
  readonly file?: string;
  readonly line?: number;
}
