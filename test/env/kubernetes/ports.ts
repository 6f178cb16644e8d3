import { createServer } from 'node:net';
import { Failure } from '../failure.ts';

/** The usual port on loopback, or any other that is free. */
export async function freePort(usual: number): Promise<number> {
  for (const port of [usual, 0]) {
    const server = createServer();
    const found = await new Promise<number | undefined>((resolve) => {
      server.once('error', () => {
        resolve(undefined);
      });
      server.listen(port, '127.0.0.1', () => {
        const address = server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : undefined);
      });
    });
    await new Promise((resolve) => server.close(resolve));
    if (found !== undefined) return found;
  }
  throw new Failure('there is no free port on 127.0.0.1');
}
