/** The requests that interLink's Go client sent for a virtual kubelet, byte by byte as it writes them. */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import type { Address, Answered } from './interlink-client.ts';

interface Recorded {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Body and headers of one request. @param image takes the place of each image of the Pod */
export function recordedRequest(name: string, image?: string): Recorded & { readonly text: string } {
  const file = join(import.meta.dirname, '../fixtures/interlink', `${name}.json`);
  const recorded = JSON.parse(readFileSync(file, 'utf8')) as Recorded;
  const swapped = (key: string, value: unknown): unknown =>
    key === 'image' && typeof value === 'string' ? image : value;
  // Go escapes these three, which stand in HTML for others.
  const text = JSON.stringify(recorded.body, image === undefined ? undefined : swapped).replaceAll(
    /[<>&]/g,
    (one) => `\\u00${one.charCodeAt(0).toString(16)}`,
  );
  const headers = { ...recorded.headers, 'Content-Length': String(Buffer.byteLength(text)) };
  return { ...recorded, headers, text };
}

/** Sends it with no header but the recorded ones. */
export function sendRecorded(address: Address, name: string, image?: string): Promise<Answered> {
  const { method, path, headers, text } = recordedRequest(name, image);
  return new Promise((resolve, reject) => {
    const sent = request(
      { ...address, method, path, headers, agent: false, setDefaultHeaders: false },
      (answer) => {
        const pieces: Buffer[] = [];
        answer.on('data', (piece: Buffer) => pieces.push(piece));
        answer.on('end', () => {
          sent.destroy();
          resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString() });
        });
        answer.on('error', reject);
      },
    );
    sent.on('error', reject);
    sent.end(text);
  });
}
