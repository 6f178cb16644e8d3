import type { Request } from '../../plugins/contracts/index.ts';
import type { WrittenShape } from './shapes.ts';
import type { Wish } from './wishes.ts';

/**
 * The worker that a wish asks for.
 * @param token for a worker that gets one with its payload
 * @param joinTimeout s
 */
export function requestOf(
  { requirements, values, name }: WrittenShape,
  { origin }: Wish,
  token: string | undefined,
  joinTimeout: number,
): Request {
  const env = {
    POOL_SHAPE: name,
    JOIN_TIMEOUT: String(Math.ceil(joinTimeout)),
  };
  const content = token === undefined ? undefined : Buffer.from(`${token}\n`).toString('base64');
  const files = content === undefined ? [] : [{ name: 'token', mode: 0o600, content, secret: true }];
  return {
    origin,
    requirements,
    payload: {
      env,
      ...(files.length > 0 && { files }),
      ...(Object.keys(values).length > 0 && { values }),
    },
  };
}
