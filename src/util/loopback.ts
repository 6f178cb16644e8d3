import { isIPv4 } from 'node:net';

/** Whether only this machine can reach this IP address, in its usual form. */
export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || (isIPv4(address) && address.startsWith('127.'));
}
