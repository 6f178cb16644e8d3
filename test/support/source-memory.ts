import type { SourceMemory } from '../../src/plugins/contracts/index.ts';

/** A memory in which every text is one and the same. @param write default: it keeps nothing */
export function memoryFor(
  write: (text: string) => Promise<void> = async () => undefined,
  read: () => string | undefined = () => undefined,
): SourceMemory {
  return {
    placeOf: (name) => name,
    read: async () => read(),
    write: (_, text) => write(text),
  };
}

/** A memory that survives a restart of the source as long as its texts do. */
export function memoryOf(texts: Map<string, string>): SourceMemory {
  return {
    placeOf: (name) => name,
    read: async (name) => texts.get(name),
    write: async (name, text) => {
      texts.set(name, text);
    },
  };
}
