/**
 * Variables of the daemon that programs of the Grid, Kerberos and HTCondor need to find their libraries, trusted
 * authorities and servers. They do not get the others (tokens, passwords).
 */
const passed =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH|X509_CERT_DIR|X509_VOMS_DIR|X509_VOMSES|VOMS_USERCONF|GLOBUS_LOCATION|GLOBUS_TCP_PORT_RANGE|ARC_LOCATION|ARC_CONFIG|KRB5_CONFIG|CONDOR_CONFIG|_CONDOR_[A-Z_]+)$/;
/** Settings of HTCondor can be secrets of their own. The path of a token is none. */
const secret = /PASSWORD|SECRET|TOKEN(?!S_FILE$|_DIRECTORY$)/;

/** The whole environment of a program. */
export function toolEnvironment(own: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(own).flatMap(([name, value]) =>
      value !== undefined && passed.test(name) && !secret.test(name) ? [[name, value] as const] : [],
    ),
  );
}
