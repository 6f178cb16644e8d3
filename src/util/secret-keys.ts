/** What stands where a secret would be shown. */
export const hidden = '(hidden)';

/**
 * Keys whose value is a secret itself. A path or a name of one (`tokenDir`, `proxySecretPath`, `secret_name`) is none.
 */
export const secretKey =
  /(pass|passwd|password|passphrase|pwd|secret|token|credentials?|bearer|auth|authorization)$|(secret|access|private|api|shared|signing|token)[_-]?key$/i;
