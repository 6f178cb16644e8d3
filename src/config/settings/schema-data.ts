import data from './settings-schema.json' with { type: 'json' };
import type { Settings } from './settings-schema.ts';

/**
 * The schema of the settings as data, generated from settings-schema.ts by scripts/generate-settings.ts: TypeBox, which it is
 * written with, would take a third of the time in which a command starts.
 */
export const settingsSchema = data as unknown as typeof Settings;
