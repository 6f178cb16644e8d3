import { everyCode } from '../every-code.ts';

export interface LoopLabels {
  readonly kind: string;
  /** A queue or a connection; empty where a loop serves all. */
  readonly target: string;
}

/**
 * A loop's name as labels: `submit CERN_PROD` is of kind `submit`. Loops of earlier configurations of a queue are counted
 * with it, since their number would grow with every change of the file.
 */
export function loopLabels(name: string): LoopLabels {
  const at = name.indexOf(' ');
  if (at < 0) return { kind: name, target: '' };
  return { kind: name.slice(0, at), target: name.slice(at + 1).replace(/ \(configuration \d+\)$/, '') };
}

/** How many codes of third parties are told apart. */
const foreignCodes = 50;

/**
 * Gives each code its label. Codes of the catalogue are few; a third-party plugin may make up as many as it likes, and the
 * ones past the first 50 become `other`: a label without bound would fill Prometheus.
 */
export function codeLabels(): (code: string | undefined) => string {
  const foreign = new Set<string>();
  return (code) => {
    if (code === undefined || code === '') return 'none';
    if (Object.hasOwn(everyCode, code) || foreign.has(code)) return code;
    if (foreign.size >= foreignCodes) return 'other';
    foreign.add(code);
    return code;
  };
}
