/** The PanDA server of the settings (Harvester's `[pandacon]`), as everything that calls it needs it. Paths are absolute. */
export interface PandaServer {
  /** `https://HOST:PORT/api/v1`, without a slash at its end. */
  readonly url: string;
  readonly login: PandaServerLogin;
  /** Authorities that may sign its certificate (PEM). Absent: those of the system. */
  readonly caFile?: string;
  /** How long one call may take, ms. */
  readonly timeout: number;
  /** How the link works with it. Absent: the defaults of the link. */
  readonly link?: PandaLinkSettings;
}

/** Settings of the link from Harvester's sections `commandmanager`, `propagator` and `submitter`. Times are s. */
export interface PandaLinkSettings {
  /** Between questions for commands: `commandmanager.sleepTime`. */
  readonly pollInterval: number;
  /** Commands that one question asks for: `commandmanager.commands_bulk_size`. */
  readonly commandsAtOnce: number;
  /** Workers in one report: `propagator.nWorkersInBulk`. */
  readonly reportBatch: number;
  /** After so long a worker is reported again though nothing changed: `propagator.updateInterval`. */
  readonly repeatInterval: number;
  /** Messages for the server's operators in one minute: `propagator.maxDialogs`. */
  readonly dialogsAtOnce: number;
  /** The lowest level of these: `propagator.minMessageLevel`. */
  readonly dialogLevel: 'INFO' | 'WARNING' | 'ERROR';
  /** Workers per activated job where the factory counts them itself: `submitter.activateWorkerFactor`. */
  readonly activateWorkerFactor: number | 'auto';
  /** Whether such a queue without activated jobs gets no worker at all: `submitter.noPilotsWhenNoActiveJobs`. */
  readonly noPilotsWhenNoActiveJobs: boolean;
}

export type PandaServerLogin =
  | { readonly kind: 'x509'; readonly certFile: string; readonly keyFile: string }
  | {
      readonly kind: 'oidc';
      /** The token itself, or the file that has it. */
      readonly token: { readonly text: string } | { readonly file: string };
      /** `VO.role`: the server takes the role from it. */
      readonly origin: string;
    };
