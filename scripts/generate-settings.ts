/**
 * Writes the schema of the settings as data, and as a program that checks settings: `npm run docs`. Whenever a command starts, TypeBox
 * and Ajv would need two tenths of a second to make them. A test holds both equal to settings-schema.ts.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import standalone from 'ajv/dist/standalone/index.js';
import { Settings } from '../src/config/settings/settings-schema.ts';
import { ajvOptions } from '../src/util/schema.ts';

/** The generated files of src/config/settings/, by name. */
export function generateSettings(): Record<string, string> {
  return {
    'settings-schema.json': `${JSON.stringify(Settings, null, 2)}\n`,
    'settings-validator.ts': validator(),
  };
}

function validator(): string {
  const ajv = new Ajv({ ...ajvOptions, code: { source: true, esm: true } });
  ajv.addSchema(Settings, 'settings');
  const code = standalone.default(ajv, { validate: 'settings' });
  // Ajv writes `require` also into an ES module.
  const imports = code.replace(
    /const (\w+) = require\("([^"]+)"\)\.default;/g,
    "import $1Module from '$2.js'; const $1 = $1Module.default;",
  );
  return `// @ts-nocheck Made by scripts/generate-settings.ts of settings-schema.ts.\n${imports.replace(/^"use strict";/, '')}\n`;
}

if (import.meta.main) {
  for (const [name, text] of Object.entries(generateSettings()))
    writeFileSync(join(import.meta.dirname, '../src/config/settings', name), text);
}
