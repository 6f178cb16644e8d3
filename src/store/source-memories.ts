/** What sources must still know after a crash, and on another machine: one text by source and name. */
export interface SourceMemoryStore {
  /** undefined: there is none. */
  read(source: string, name: string): Promise<string | undefined>;
  /** Replaces it. When this returns it survives a crash. */
  write(source: string, name: string, text: string): Promise<void>;
  remove(source: string, name: string): Promise<void>;
}
