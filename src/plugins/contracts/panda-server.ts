/** The PanDA server of the settings (Harvester's `[pandacon]`), as everything that calls it needs it. Paths are absolute. */
export interface PandaServer {
  /** `https://HOST:PORT/api/v1`, without a slash at its end. */
  readonly url: string;
  readonly login: PandaServerLogin;
  /** Authorities that may sign its certificate (PEM). Absent: those of the system. */
  readonly caFile?: string;
  /** How long one call may take, ms. */
  readonly timeout: number;
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
