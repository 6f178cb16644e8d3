/**
 * Variables of the daemon that programs of the Grid, Kerberos and HTCondor need to find their libraries, trusted
 * authorities and servers. They do not get the others (tokens, passwords).
 */
const passed =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH|X509_CERT_DIR|X509_VOMS_DIR|X509_VOMSES|VOMS_USERCONF|GLOBUS_LOCATION|GLOBUS_TCP_PORT_RANGE|ARC_LOCATION|ARC_CONFIG|KRB5_CONFIG|CONDOR_CONFIG|_CONDOR_[A-Z_]+)$/;
/** Settings of HTCondor can be secrets of their own. The path of a token is none. */
const secret = /PASSWORD|SECRET|TOKEN(?!S_FILE$|_DIRECTORY$)/;

/** What the programs of HTCondor read besides: their settings in either case, and the names of files. */
const readByCondor =
  /^(_condor_[\w.]+|BEARER_TOKEN|BEARER_TOKEN_FILE|XDG_RUNTIME_DIR|X509_USER_(PROXY|CERT|KEY))$/i;
/** A value that is the name of a file, a number or a switch is no secret, whatever its variable is called. */
const harmless = /^(\/[^\s:=]*|\d+|true|false)$/i;

/** The whole environment of a program of HTCondor. */
export function condorEnvironment(own: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const settings = Object.entries(own).filter(
    ([name, value = '']) =>
      readByCondor.test(name) && (harmless.test(value) || !/TOKEN|PASSWORD|SECRET|KEY/i.test(name)),
  );
  return { ...toolEnvironment(own), ...definedIn(settings) };
}

function definedIn(entries: readonly (readonly [string, string | undefined])[]): Record<string, string> {
  return Object.fromEntries(
    entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
}

/** The whole environment of a program. */
export function toolEnvironment(own: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return definedIn(Object.entries(own).filter(([name]) => passed.test(name) && !secret.test(name)));
}
