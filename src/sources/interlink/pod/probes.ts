import type { Action, Container, Probe } from '../../../clients/interlink/wire.ts';
import type { Expand } from './environment.ts';
import { fieldsOf, isText, lineOf } from './lines.ts';
import { type Findings, problem, shown } from './problem.ts';

/** The actions that the runner may do beside the container's command. */
const probes = { startup: 'startupProbe', liveness: 'livenessProbe', readiness: 'readinessProbe' } as const;
const hooks = ['postStart', 'preStop'] as const;

/**
 * Lines `probe NAME DELAY TIMEOUT PERIOD SUCCESS FAILURE`, `action NAME KIND`, and the words of each action. Times and thresholds
 * that are missing or too small are Kubernetes' own defaults.
 */
export function actionLines(
  container: Container,
  at: string,
  expand: Expand,
  findings: Findings,
): readonly string[] {
  const lines: string[] = [];
  const add = (name: string, action: Action, place: string): boolean => {
    const made = wordsOf(action, container, place, expand, findings);
    if (made === undefined) return false;
    lines.push(
      fieldsOf('action', name, made.kind),
      ...made.words.map((word) => lineOf(`word-${name}`, word)),
    );
    return true;
  };
  for (const [name, key] of Object.entries(probes)) {
    const probe = container[key];
    if (!probe) continue;
    if (probe.grpc !== undefined && probe.grpc !== null) {
      findings.warnings.push(
        `container ${container.name}: its ${key} asks by gRPC, which the job does not do`,
      );
      continue;
    }
    if (add(name, probe, `${at}/${key}`)) lines.push(fieldsOf('probe', name, ...timing(name, probe)));
  }
  for (const name of hooks) {
    const hook = container.lifecycle?.[name];
    if (hook) add(name, hook, `${at}/lifecycle/${name}`);
  }
  return lines;
}

function timing(name: string, probe: Probe): readonly number[] {
  const bounded = (value: number | null | undefined, least: number, otherwise: number) =>
    typeof value === 'number' && value >= least ? Math.min(value, 1e6) : otherwise;
  return [
    bounded(probe.initialDelaySeconds, 0, 0),
    bounded(probe.timeoutSeconds, 1, 1),
    bounded(probe.periodSeconds, 1, 10),
    // Kubernetes takes no other number for the two.
    name === 'readiness' ? bounded(probe.successThreshold, 1, 1) : 1,
    bounded(probe.failureThreshold, 1, 3),
  ];
}

interface Made {
  readonly kind: 'exec' | 'http' | 'tcp' | 'sleep';
  readonly words: readonly string[];
}

function wordsOf(
  { exec, httpGet, tcpSocket, sleep }: Action,
  container: Container,
  at: string,
  expand: Expand,
  { problems }: Findings,
): Made | undefined {
  const wrong = (message: string): Made | undefined => {
    problems.push(problem(at, message));
    return undefined;
  };
  if (exec) {
    const words = (exec.command ?? []).map(expand);
    if (words[0] === undefined || words[0] === '') return wrong('the action has no command');
    return words.every(isText)
      ? { kind: 'exec', words }
      : wrong('the command has a NUL or half of a character');
  }
  if (sleep) return { kind: 'sleep', words: [String(Math.max(0, Math.min(sleep.seconds, 86_400)))] };
  const target = httpGet ?? tcpSocket;
  if (!target) return wrong('the action is neither exec, httpGet, tcpSocket nor sleep');
  const port = portOf(target.port, container);
  if (port === undefined) return wrong(`${shown(String(target.port))} is neither a port nor the name of one`);
  // Containers of a job share the machine's network.
  const host = target.host === undefined || target.host === '' ? '127.0.0.1' : target.host;
  if (!/^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$/.test(host))
    return wrong(`${shown(host)} is no name of a host`);
  if (!httpGet) return { kind: 'tcp', words: [host, port] };
  const scheme = (httpGet.scheme ?? 'HTTP').toLowerCase();
  if (scheme !== 'http' && scheme !== 'https')
    return wrong(`the scheme ${shown(scheme)} is neither HTTP nor HTTPS`);
  const path = (httpGet.path ?? '').startsWith('/') ? (httpGet.path ?? '') : `/${httpGet.path ?? ''}`;
  if (/[\s\u0000-\u001f\u007f]/.test(path) || !isText(path))
    return wrong(`the path ${shown(path)} has a blank or a control character`);
  const headers = (httpGet.httpHeaders ?? []).map(({ name, value }) => [name, value] as const);
  if (
    headers.some(
      ([name, value]) => !/^[A-Za-z0-9_-]+$/.test(name) || /[\r\n\0]/.test(value) || !isText(value),
    )
  )
    return wrong('a header has a name or a value that HTTP does not allow');
  return {
    kind: 'http',
    words: [scheme, host, port, path, ...headers.map(([name, value]) => `${name}: ${value}`)],
  };
}

function portOf(written: number | string, { ports }: Container): string | undefined {
  const number = /^\d+$/.test(String(written))
    ? Number(written)
    : (ports ?? []).find(({ name }) => name === written)?.containerPort;
  return number !== undefined && number >= 1 && number <= 65_535 ? String(number) : undefined;
}
