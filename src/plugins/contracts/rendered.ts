/** One worker in the form in which its backend would get it. It may hold secrets: thresher masks them on display. */
export interface Rendered {
  /** `sdf`: `document` is submit text of HTCondor; `yaml`: an object. */
  readonly format: 'yaml' | 'sdf';
  readonly document: unknown;
  /** The variables that the pilot is started with, as far as the backend is given them apart. */
  readonly environment: Readonly<Record<string, string>>;
  /** Files of this machine that it is made of, or that go with it. */
  readonly files: readonly RenderedFile[];
  /** Sentences on what the document does not show. */
  readonly notes: readonly string[];
}

export interface RenderedFile {
  readonly role: string;
  readonly path: string;
}
