import { createHash } from 'node:crypto';

/** The kinds of computing elements that CRIC names, with the ports of endpoints without one. Source: Harvester's htcondor_submitter. */
const ports: Readonly<Record<string, number>> = { 'cream-ce': 8443, 'arc-ce': 443, 'htcondor-ce': 9619 };
/** That of ARC's old interface, which is of no use to REST. */
const gridFtpPort = 2811;

/** The endpoint of a computing element: `host:port`, for ARC with a path if it has one. */
export interface CeEndpoint {
  readonly endpoint: string;
  readonly host: string;
  /** That its tokens must have: ARC wants a URL, without the port if that is the one of HTTPS. */
  readonly audience: string;
}

/**
 * Reads an endpoint as CRIC has it: no scheme, a port, and for ARC the one of REST. What jobs are submitted with and what tokens are made for
 * must be the same.
 * @param written `host`, `host:port` or a URL
 * @param flavour in any case; of an unknown one no port is known
 * @param gridFtp ARC is spoken to by its old interface
 * Source: Harvester's htcondor_submitter and iam_token_cred_manager.
 */
export function ceEndpoint(written: string, flavour: string, gridFtp = false): CeEndpoint {
  const kind = flavour.toLowerCase();
  const isArc = kind === 'arc-ce';
  const bare = written.replace(/^\w+:\/\//, '');
  const [, host = bare, given = '', path = ''] = /^(\[[^\]]*\]|[^:/]*)(?::(\w*))?(\/.*)?$/s.exec(bare) ?? [];
  const usual = isArc && gridFtp ? gridFtpPort : ports[kind];
  const isOld = isArc && !gridFtp && given === String(gridFtpPort);
  const port = isOld || given === '' ? usual : given;
  const endpoint = port === undefined ? host : `${host}:${port}`;
  const url = String(port) === '443' ? `https://${host}` : `https://${endpoint}`;
  return {
    endpoint: isArc ? endpoint + path.replace(/\/$/, '') : endpoint,
    host,
    audience: isArc ? url : endpoint,
  };
}

/** Name of the file with the token for an endpoint. Source: Harvester's endpoint_to_filename. */
export function tokenFileOf(endpoint: string): string {
  return createHash('md5').update(endpoint, 'latin1').digest('hex');
}
