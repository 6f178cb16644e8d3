import { messageOf } from '../../worker/errors.ts';
import { type Asked, KubernetesError } from './errors.ts';

/** Why no answer came, where the error itself does not say it in an operator's words. By Node's and undici's codes. */
const sentences: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refuses connections: nothing listens there',
  ENOTFOUND: 'cannot be found: no such name; check `server` in the kubeconfig',
  EAI_AGAIN: 'cannot be found: the name server does not answer',
  EHOSTUNREACH: 'cannot be reached: no route to it',
  ENETUNREACH: 'cannot be reached: no route to its network',
  ETIMEDOUT: 'does not answer: the connection timed out',
  UND_ERR_CONNECT_TIMEOUT: 'does not answer: the connection timed out',
  ECONNRESET: 'closed the connection before its answer was complete',
  EPIPE: 'closed the connection before its answer was complete',
  UND_ERR_SOCKET: 'closed the connection before its answer was complete',
  CERT_HAS_EXPIRED: 'shows a certificate that has expired',
  CERT_NOT_YET_VALID: "shows a certificate that is not valid yet; check this machine's clock",
  DEPTH_ZERO_SELF_SIGNED_CERT:
    'shows a self-signed certificate; name its CA in `certificate-authority` of the kubeconfig',
  SELF_SIGNED_CERT_IN_CHAIN:
    'shows a certificate of an unknown CA; name that in `certificate-authority` of the kubeconfig',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'shows a certificate of an unknown CA; name that in `certificate-authority` of the kubeconfig',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'shows a certificate of an unknown CA; name that in `certificate-authority` of the kubeconfig',
  CERT_SIGNATURE_FAILURE:
    'shows a certificate that another CA signed; check `certificate-authority` in the kubeconfig',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'shows a certificate of another name; check `server`, or set `tls-server-name` in the kubeconfig',
  ERR_SSL_WRONG_VERSION_NUMBER:
    'does not speak TLS; `server` in the kubeconfig may have to begin with http://',
  ERR_SSL_PACKET_LENGTH_TOO_LONG:
    'does not speak TLS; `server` in the kubeconfig may have to begin with http://',
  HPE_INVALID_CONSTANT: 'does not speak HTTP; `server` in the kubeconfig may have to begin with https://',
};

/** The failure of a request that got no answer, or half of one. @param sent whether any of it may have gone out. */
export function noAnswer(asked: Asked, error: unknown, sent: boolean): KubernetesError {
  const code = codeOf(error);
  const known = code === undefined ? undefined : sentences[code];
  const message =
    known === undefined
      ? `${asked.server} cannot be reached: ${messageOf(error)}`
      : `${asked.server} ${known}`;
  const facts = { ...asked, ...(code && { cause: code }) };
  return new KubernetesError({ code: 'kubernetes-unreachable', message, maybeDone: sent }, facts, {
    cause: error,
  });
}

/** The failure of a request that was answered too late or not at all. `ms` is how long was waited. */
export function tooLate(asked: Asked, ms: number, sent: boolean): KubernetesError {
  const message = `${asked.server} did not answer ${asked.method} ${asked.path} within ${ms / 1000} s`;
  return new KubernetesError({ code: 'kubernetes-unreachable', message, maybeDone: sent }, { ...asked });
}

/** The failure of a request whose answer has more than is read at once. @param most "400000 bytes" */
export function tooLarge(asked: Asked, most: string, sent: boolean): KubernetesError {
  const message = `${asked.server} answers ${asked.method} ${asked.path} with more than ${most}, the most that is read at once`;
  return new KubernetesError({ code: 'kubernetes-too-large', message, maybeDone: sent }, { ...asked });
}

/** `cause` among the facts. */
const silence = 'silence';

/** The failure of a stream on which nothing came for so many ms. */
export function silent(asked: Asked, ms: number): KubernetesError {
  const message = `${asked.server} has been silent for ${ms / 1000} s on ${asked.path}: the connection is dead`;
  const facts = { ...asked, cause: silence };
  return new KubernetesError({ code: 'kubernetes-unreachable', message, maybeDone: true }, facts);
}

/** Whether nothing came on a stream for too long, and nothing else is known to be wrong. */
export function isSilence(error: unknown): boolean {
  return error instanceof KubernetesError && error.facts['cause'] === silence;
}

/** The failure of a request that its caller no longer wants. */
export function givenUp(asked: Asked, sent: boolean): KubernetesError {
  const message = `${asked.method} ${asked.path} to ${asked.server} was given up`;
  return new KubernetesError({ code: 'kubernetes-given-up', message, maybeDone: sent }, { ...asked });
}

/** undici wraps what happened, and a name with several addresses fails with all of their errors. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const inner = error.cause === undefined ? undefined : codeOf(error.cause);
  if (inner !== undefined && inner in sentences) return inner;
  return 'code' in error && typeof error.code === 'string' ? error.code : inner;
}
