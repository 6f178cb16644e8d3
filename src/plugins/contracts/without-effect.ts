import type { TSchema } from 'typebox';
import Type from '../../util/type.ts';

/** An option that a plugin accepts for Harvester's sake, without effect. `why` is a clause without a full stop. */
export function withoutEffect(why: string) {
  return Type.Optional(Type.Unknown({ description: `Without effect: ${why}.`, withoutEffect: why }));
}

/** Why an option does nothing; undefined for one that its reader honours. */
export function whyWithoutEffect(schema: TSchema): string | undefined {
  const { withoutEffect: why } = schema as { withoutEffect?: unknown };
  return typeof why === 'string' ? why : undefined;
}
