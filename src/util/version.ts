import { readFileSync } from 'node:fs';

/** This program's version, from the package it runs from: src/ and dist/ lie at the same depth. */
export function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
