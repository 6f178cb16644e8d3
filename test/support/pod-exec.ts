import { Agent, WebSocket } from 'undici';
import type { Access } from '../env/kubernetes/api.ts';

/** A command that ended in a container. */
export interface Executed {
  /** 0, the exit code, or -1 where Kubernetes says why there is none: `errors` ends with its sentence then. */
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** Channels of v5.channel.k8s.io: the first byte of each message. */
const channels = { output: 1, errors: 2, status: 3 } as const;

interface ExecStatus {
  readonly status?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
}

/**
 * Runs a command in a container, as `kubectl exec POD -- COMMAND` does.
 * @param pod its path in the API, /api/v1/namespaces/NAME/pods/NAME
 * @throws if no container takes it, or if it does not end within `timeout` ms
 */
export async function execIn(
  access: Access,
  pod: string,
  command: readonly string[],
  { container, timeout = 30_000 }: { readonly container?: string; readonly timeout?: number } = {},
): Promise<Executed> {
  const { ca, cert, key } = access;
  const dispatcher = new Agent({ connect: { ca, cert, key } });
  const query = new URLSearchParams({ stdout: 'true', stderr: 'true' });
  if (container !== undefined) query.set('container', container);
  for (const word of command) query.append('command', word);
  const url = `${access.server.replace(/^https/, 'wss')}${pod}/exec?${query.toString()}`;
  const socket = new WebSocket(url, { protocols: ['v5.channel.k8s.io'], dispatcher });
  socket.binaryType = 'arraybuffer';
  const pieces: Record<number, Buffer[]> = { 1: [], 2: [], 3: [] };
  const said = (channel: number) => Buffer.concat(pieces[channel] ?? []).toString();
  const timer = setTimeout(() => {
    socket.close();
  }, timeout);
  try {
    await new Promise<void>((ended) => {
      socket.addEventListener('message', ({ data }) => {
        const bytes = Buffer.from(data as ArrayBuffer);
        pieces[bytes[0] ?? 0]?.push(bytes.subarray(1));
      });
      socket.addEventListener('close', () => {
        ended();
      });
      // A close follows.
      socket.addEventListener('error', () => undefined);
    });
    const status = said(channels.status);
    if (status === '') throw new Error(`${command.join(' ')} in ${pod} has no end: ${said(channels.errors)}`);
    return {
      ...endOf(JSON.parse(status) as ExecStatus, said(channels.errors)),
      output: said(channels.output),
    };
  } finally {
    clearTimeout(timer);
    await dispatcher.destroy();
  }
}

function endOf(
  { status, message = '', details }: ExecStatus,
  errors: string,
): Pick<Executed, 'code' | 'errors'> {
  if (status === 'Success') return { code: 0, errors };
  const code = details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message;
  return code === undefined ? { code: -1, errors: `${errors}${message}` } : { code: Number(code), errors };
}
