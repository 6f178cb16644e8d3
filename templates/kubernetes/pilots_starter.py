"""Starts a pilot in a Pod whose template names no command, as Harvester's script of this name does.

thresher keeps this file in the ConfigMap `pilots-starter` and mounts it at /scratch/executables. Everything it needs comes
from the environment: computingSite, pandaQueueName, proxySecretPath, logs_frontend_w and the others of docs/kubernetes.md.
`pilotWrapper` names another wrapper than the one in /cvmfs: a path, or an https address.

Python 3.6 or newer, and nothing beside its standard library.
"""

import gzip
import http.client
import os
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
import uuid

# thresher replaces a ConfigMap with a smaller version, and never one with a greater.
VERSION = 1

WRAPPER = "/cvmfs/atlas.cern.ch/repo/sw/PandaPilotWrapper/latest/runpilot2-wrapper.sh"
# The pilot ends processes that it does not know. It knows a wrapper by this name, and this script by its own.
WRAPPER_NAME = "runpilot2-wrapper.sh"
LOG_NAME = "wrapper-wid.log"
# Directories of certificate authorities, where X509_CERT_DIR names none.
AUTHORITIES = ["/etc/grid-security/certificates", "/cvmfs/grid.cern.ch/etc/grid-security/certificates"]
# How long a connection may be silent, s.
PATIENCE = 180
# How long output is read on that processes hold open beyond the end of the wrapper, s.
DRAIN = 5


class CannotStart(Exception):
    """The message says why there will be no pilot."""


def say(message):
    print(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "pilots_starter:", message, flush=True)


def write_private(path, content):
    """Replaces a file by one that its owner alone may read: the pilot refuses a proxy that others can read."""
    if os.path.lexists(path):
        os.remove(path)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "wb") as file:
        file.write(content)
    return path


def copy_private(source, directory):
    """A Secret is mounted read-only and readable for its group; pilots want a file of their own."""
    try:
        with open(source, "rb") as file:
            content = file.read()
    except OSError as error:
        raise CannotStart("{} cannot be read: {}".format(source, error.strerror))
    return write_private(os.path.join(directory, os.path.basename(source)), content)


def place_credentials(env, work):
    """Copies proxy and token to the work directory. Returns the paths of both, None for one that is not configured."""
    proxy = token = None
    if env.get("proxySecretPath"):
        proxy = copy_private(env["proxySecretPath"], work)
    elif env.get("proxyContent"):
        proxy = write_private(os.path.join(work, "x509proxy"), env.pop("proxyContent").encode())
    if proxy:
        env["X509_USER_PROXY"] = proxy
    names = [env.get(name) for name in ("PANDA_AUTH_DIR", "PANDA_AUTH_TOKEN", "PANDA_AUTH_TOKEN_KEY")]
    if all(names):
        directory, name, key = names
        token = copy_private(os.path.join(directory, name), work)
        copy_private(os.path.join(directory, key), work)
    else:
        env.pop("PANDA_AUTH_TOKEN", None)
    if not proxy and not (token and env.get("PANDA_AUTH_ORIGIN")):
        raise CannotStart(
            "there is neither a proxy (proxySecretPath) nor a token (PANDA_AUTH_DIR, PANDA_AUTH_TOKEN, PANDA_AUTH_TOKEN_KEY)"
        )
    return proxy, token


def find_wrapper(env, work):
    source = env.get("pilotWrapper") or WRAPPER
    if not source.startswith("https://"):
        return source
    path = os.path.join(work, WRAPPER_NAME)
    try:
        with urllib.request.urlopen(source, timeout=PATIENCE, context=tls_context(env)) as answer:
            with open(path, "wb") as file:
                shutil.copyfileobj(answer, file)
    except OSError as error:
        raise CannotStart("the wrapper cannot be had from {}: {}".format(source, error))
    return path


def wrapper_options(env, work):
    queue = env.get("pandaQueueName", "")
    options = ["-q", queue, "-r", queue, "-s", env.get("computingSite", ""), "-a", work]
    if env.get("resourceType"):
        options += ["--resource-type", env["resourceType"]]
    options += ["-j", env.get("prodSourceLabel") or "managed", "-i", env.get("pilotType") or "PR"]
    if env.get("jobType"):
        options += ["--job-type", env["jobType"]]
    options += shlex.split(env.get("pilotUrlOpt", "")) + shlex.split(env.get("pythonOption", ""))
    options += ["--pilotversion", env.get("pilotVersion") or "2", "-w", "generic", "--pilot-user=ATLAS"]
    options += ["--url=https://pandaserver.cern.ch", "-d"]
    options += ["--harvester-submit-mode=" + (env.get("submit_mode") or "PULL"), "--allow-same-user=False"]
    return options


def copy_output(stream, path):
    """Hands the wrapper's output on as it comes, and keeps it for the upload as long as the disk has room."""
    keeps = append(path, b"", "wb")
    while True:
        piece = os.read(stream.fileno(), 65536)
        if not piece:
            break
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        keeps = keeps and append(path, piece, "ab")


def append(path, piece, mode):
    try:
        with open(path, mode) as log:
            log.write(piece)
        return True
    except OSError as error:
        say("the log is kept no further: {}".format(error.strerror))
        return False


class Run:
    """The wrapper as a child. A signal to the Pod reaches the wrapper, which gives the pilot time to end its job."""

    def __init__(self):
        self.process = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.hand_on)

    def hand_on(self, number, _frame):
        if self.process is None:
            sys.exit(128 + number)
        try:
            os.kill(self.process.pid, number)
        except ProcessLookupError:
            pass

    def status_of(self, command, env, log):
        """Returns the exit status as a shell has it: 128 and the number of the signal that ended it."""
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        copier = threading.Thread(target=copy_output, args=(self.process.stdout, log), daemon=True)
        copier.start()
        # As the first process of its container it gets every orphan, and each must be waited for.
        while True:
            pid, status = os.wait()
            if pid == self.process.pid:
                break
        copier.join(DRAIN)
        if os.WIFSIGNALED(status):
            return 128 + os.WTERMSIG(status)
        return os.WEXITSTATUS(status)


def tls_context(env):
    """Server certificates are checked, by the system's authorities and those of the Grid."""
    context = ssl.create_default_context()
    for directory in [env["X509_CERT_DIR"]] if env.get("X509_CERT_DIR") else AUTHORITIES:
        if os.path.isdir(directory):
            context.load_verify_locations(capath=directory)
    return context


def upload(env, log, name, proxy, token):
    """Puts the log where logs_frontend_r shows it. The pilot has ended: a failure here is told, and changes nothing."""
    target = env.get("logs_frontend_w")
    if not target:
        return
    url = urllib.parse.urlsplit(target.replace("/server/panda", "/api/v1/file_server") + "/upload_cache_file")
    try:
        if url.scheme != "https":
            raise ValueError("{} is not an https address".format(target))
        context = tls_context(env)
        headers = {"Accept": "application/json"}
        if token and env.get("PANDA_AUTH_ORIGIN"):
            with open(token) as file:
                headers["Authorization"] = "Bearer " + file.read().strip()
            headers["Origin"] = env["PANDA_AUTH_ORIGIN"]
        else:
            context.load_cert_chain(proxy, proxy)
        with open(log, "rb") as file:
            packed = gzip.compress(file.read())
        border = uuid.uuid4().hex
        headers["Content-Type"] = "multipart/form-data; boundary=" + border
        disposition = 'Content-Disposition: form-data; name="file"; filename="{}"'.format(name)
        head = "\r\n".join(["--" + border, disposition, "Content-Type: application/octet-stream", "", ""])
        body = head.encode() + packed + "\r\n--{}--\r\n".format(border).encode()
        connection = http.client.HTTPSConnection(url.hostname, url.port, context=context, timeout=PATIENCE)
        connection.request("POST", url.path, body, headers)
        answer = connection.getresponse()
        say("the log was sent: {} {}".format(answer.status, answer.reason))
        connection.close()
    except Exception as error:
        say("the log could not be sent: {}".format(error))


def main(environ):
    env = dict(environ)
    work = env.get("TMPDIR") or "/scratch"
    run = Run()
    try:
        os.makedirs(work, exist_ok=True)
        proxy, token = place_credentials(env, work)
        wrapper = find_wrapper(env, work)
    except CannotStart as reason:
        say("no pilot was started: {}".format(reason))
        return 1
    name = "{}_{}_gz.out".format(env.get("HARVESTER_ID", ""), env.get("workerID", ""))
    # The pilot tells the PanDA server where its log will be.
    if env.get("logs_frontend_r"):
        env["GTAG"] = "{}/{}".format(env["logs_frontend_r"], name)
    log = os.path.join(work, LOG_NAME)
    say("version {} starts {}".format(VERSION, wrapper))
    status = run.status_of(["bash", wrapper] + wrapper_options(env, work), env, log)
    say("the wrapper ended with {}".format(status))
    upload(env, log, name, proxy, token)
    return status


if __name__ == "__main__":
    sys.exit(main(os.environ))
