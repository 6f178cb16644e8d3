#!/bin/bash
# pilot.sh SITE     the real pilot (PyPI panda-pilot 3.7.0.36, unpatched) against the running panda-server: one job, then exit
# pilot.sh install  fetch it from PyPI, below the directory of the server (idempotent)
# pilot.sh env      print `export` lines with all that a pilot needs: for pilots that run elsewhere, or as another user
#
# Works where nothing but the server is reachable: queue and storage data are local files, outputs are moved to a local directory.
# A job for it:  admin.sh job SITE --transformation http://pandaserver-doma.cern.ch:25080/trf/user/run-sh --params "-c 'echo hello'"
# (the pilot accepts only a known base URL for a transformation, and takes the file itself from HARVESTER_WORKDIR)
# DANGER, and why this runs in a PID namespace of its own: when its payload ends, the pilot kills EVERY process of its user whose parent
# is PID 1 (its "orphans"): daemons, other tests, shells. Never start pilot.py bare. PILOT_NOKILL=1 switches that off too, and is set
# as the second fence.
# Environment: HARVESTER_ID and HARVESTER_WORKER_ID are passed on, as in production. PILOT_DIR: work directory (kept).
# PILOT_CODE_DIR, PILOT_PYTHON, PANDA_SERVER, PANDA_CA, PANDA_PROD_ALL: those of `env`, which is not asked where all are set.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
VERSION=3.7.0.36
SITE=${1:?pilot.sh SITE}

if [ "${PILOT_CODE_DIR:-}" = '' ] || [ "${PILOT_PYTHON:-}" = '' ] || [ "${PANDA_SERVER:-}" = '' ] || [ "${PANDA_PROD_ALL:-}" = '' ]; then
  eval "$("$HERE/server.sh" env)"
  PILOT_CODE_DIR=$(dirname "$PANDA_LOGS")/pilot/panda-pilot-$VERSION
  PILOT_PYTHON=$(dirname "$PANDA_LOGS")/venv/bin/python
fi
case $SITE in
  env)
    for name in PILOT_CODE_DIR PILOT_PYTHON PANDA_SERVER PANDA_CA PANDA_PROD_ALL; do echo "export $name=${!name}"; done
    exit ;;
  install)
    mkdir -p "$(dirname "$PILOT_CODE_DIR")"; exec 9>"$(dirname "$PILOT_CODE_DIR")/.lock"; flock -w 180 9
    [ ! -s "$PILOT_CODE_DIR/pilot.py" ] || exit 0
    cd "$(dirname "$PILOT_CODE_DIR")"; rm -rf part; mkdir part # the wheel lacks pilot.py: take the sdist
    "$PILOT_PYTHON" -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: -d part "panda-pilot==$VERSION"
    tar --no-same-owner -xzf "part/panda-pilot-$VERSION.tar.gz" -C part
    mv "part/panda-pilot-$VERSION" .; rm -rf part
    exit ;;
esac
[ -s "$PILOT_CODE_DIR/pilot.py" ] || { echo "pilot.sh: no pilot in $PILOT_CODE_DIR: run pilot.sh install" >&2; exit 1; }
if [ $$ != 1 ]; then # PID 1 of the new namespace is this script again; nothing outside can be seen or signalled from inside
  ns=(--pid --fork --kill-child --mount-proc); [ "$(id -u)" = 0 ] || ns+=(--map-root-user)
  unshare "${ns[@]}" true 2>/dev/null || { echo "pilot.sh: no PID namespace can be made here (unshare ${ns[*]}): refusing to start the pilot" >&2; exit 1; }
  exec unshare "${ns[@]}" -- "$(readlink -f "$0")" "$@"
fi
[ "$(ps -e -o pid= | wc -l)" -lt 10 ] || { echo "pilot.sh: processes from outside are visible: refusing" >&2; exit 1; }
# A worker may run as a user who cannot reach the server's own Python.
"$PILOT_PYTHON" -c '' 2>/dev/null || PILOT_PYTHON=$(PATH=/usr/bin:/bin command -v python3) || { echo "pilot.sh: no python3 for the user $(id -un)" >&2; exit 1; }
W=${PILOT_DIR:-$(mktemp -d "${TMPDIR:-/tmp}/pilot.XXXXXX")}; mkdir -p "$W/out" "$W/harvester"; cd "$W"
printf '#!/bin/sh\nexec /bin/sh "$@"\n' > harvester/run-sh
cat > queuedata.json <<J
{"name": "$SITE", "nickname": "$SITE", "resource": "$SITE", "siteid": "$SITE", "site": "$SITE", "atlas_site": "$SITE", "panda_resource": "$SITE",
 "state": "ACTIVE", "status": "online", "type": "unified", "maxwdir": 20000, "maxrss": 4000, "maxinputsize": 10000, "corecount": 1, "timefloor": 0, "maxtime": 86400,
 "is_cvmfs": false, "container_type": "", "params": {"internet_protocol_version": "IPv4"},
 "copytools": {"mv": {"setup": ""}}, "acopytools": {"default": ["mv"], "pr": ["mv"], "pw": ["mv"], "pl": ["mv"]},
 "acopytools_schemas": {}, "astorages": {"default": ["LOCAL"], "pr": ["LOCAL"], "pw": ["LOCAL"], "pl": ["LOCAL"]}, "aprotocols": {}}
J
printf '{"%s": %s}\n' "$SITE" "$(cat queuedata.json)" > cric_pandaqueues.json
cat > ddm.json <<J
{"LOCAL": {"name": "LOCAL", "pk": 1, "token": "LOCAL", "type": "TEST", "state": "ACTIVE", "site": "$SITE", "is_deterministic": true,
 "se": "file://", "arprotocols": {"write_lan": [["file://", "$W/out/", 1]], "read_lan": [["file://", "$W/out/", 1]]},
 "rprotocols": {}, "resource": {"bucket_id": null, "endpoint": "LOCAL"}, "special_setup": ""}}
J
cp ddm.json cric_ddmendpoints.json
# the pilot's own configuration with shorter waits
sed -e 's|^kill_instruction_time:.*|kill_instruction_time: 10|' -e 's|^thread_check:.*|thread_check: 1|' "$PILOT_CODE_DIR/pilot/util/default.cfg" > pilot.cfg
code=0
env PILOT_NOKILL=1 HARVESTER_PILOT_CONFIG="$W/pilot.cfg" HARVESTER_WORKDIR="$W/harvester" LOCAL_AGIS_SCHEDCONF="$W/cric_pandaqueues.json" \
  X509_USER_PROXY="$PANDA_PROD_ALL" X509_CERT_DIR="$(dirname "$PANDA_CA")" PILOT_SITENAME="$SITE" PYTHONPATH="$PILOT_CODE_DIR" PYTHONDONTWRITEBYTECODE=1 \
  "$PILOT_PYTHON" "$PILOT_CODE_DIR/pilot.py" -d -q "$SITE" --pilot-user generic -w generic -j managed --url https://127.0.0.1 -p "${PANDA_SERVER##*:}" \
  --queuedata-url "$W/queuedata.json" --storagedata-url "$W/ddm.json" -t -u --use-rucio-traces False --output-dir "$W/out" \
  --lifetime 600 --getjobrequests 1 --cleanup False >"$W/pilot.out" 2>&1 || code=$?
echo "pilot exit $code, log $W/pilot.out"; exit "$code"
