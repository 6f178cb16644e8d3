#!/bin/bash
# admin.sh - what production has around a panda-server, straight into its database.
#
#   admin.sh site NAME [--harvester ID] [--status online|test|offline] [--workflow W]   a PanDA queue
#   admin.sh job SITE [--n N] [--transformation T] [--params P] [--label managed|user|...] [--resource SCORE]
#                                    activated jobs, ready for acquire_jobs; prints their ids
#   admin.sh command HARVESTER_ID COMMAND ['JSON']   a new command, replacing one of the same name
#   admin.sh settle [ID...]          what the server's adder daemon does: a job in `holding` with a final report becomes
#                                    finished or failed (all such jobs without ids)
#   admin.sh tokill ID...            tell the pilots of these jobs to stop (tobekilled)
#   admin.sh workers | jobs | commands | dump   print the tables (dump: every one that has rows)
#   admin.sh clean                   empty every table but resource_types, and start the ids at 1
#   admin.sh sql 'STATEMENT'
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -n "${PANDA_PSQL:-}" ] || eval "$("$HERE/server.sh" env | grep PANDA_PSQL)"
sql() { "$PANDA_PSQL" -v ON_ERROR_STOP=1 "$@"; }
usage() { sed -n '4,16p' "$0"; exit 2; }

site() {
  local name=${1:?} harvester='' status=online workflow=pull_ups; shift
  while [ $# -gt 0 ]; do case $1 in
    --harvester) harvester=$2 ;; --status) status=$2 ;; --workflow) workflow=$2 ;; *) usage ;; esac; shift 2; done
  sql -q -v name="$name" -v harvester="$harvester" -v status="$status" -v workflow="$workflow" <<'S'
INSERT INTO schedconfig_json VALUES (:'name', jsonb_build_object(
    'nickname', :'name', 'siteid', :'name', 'name', :'name', 'cloud', 'TEST', 'vo_name', 'test', 'status', :'status', 'state', 'ACTIVE',
    'type', 'unified', 'capability', 'ucore', 'workflow', :'workflow', 'harvester', :'harvester', 'corecount', 8, 'corepower', 10,
    'maxrss', 16000, 'minrss', 0, 'meanrss', 0, 'maxtime', 86400, 'mintime', 0, 'maxwdir', 20000, 'maxinputsize', 10000,
    'wnconnectivity', 'full', 'queues', jsonb_build_array(jsonb_build_object('ce_endpoint', 'ce.test')), 'params', '{}'::jsonb), now())
  ON CONFLICT (panda_queue) DO UPDATE SET data = excluded.data, last_update = now();
S
}

job() {
  local site=${1:?} n=1 transformation=/bin/echo params=hello label=managed resource=SCORE; shift
  while [ $# -gt 0 ]; do case $1 in
    --n) n=$2 ;; --params) params=$2 ;; --transformation) transformation=$2 ;; --label) label=$2 ;; --resource) resource=$2 ;; *) usage ;; esac; shift 2; done
  sql -qAt -v site="$site" -v n="$n" -v tr="$transformation" -v params="$params" -v label="$label" -v resource="$resource" <<'S'
WITH new AS (
  INSERT INTO jobsactive4 (pandaid, jobdefinitionid, jobsetid, jobname, jobstatus, transformation, prodsourcelabel, produserid, produsername,
      computingsite, cloud, vo, resource_type, corecount, attemptnr, maxattempt, assignedpriority, currentpriority, minramcount, maxdiskcount,
      maxcpucount, ipconnectivity, creationtime, modificationtime, statechangetime, homepackage, atlasrelease, cmtconfig, destinationse, processingtype)
  SELECT id, id, id, 'test.job.' || id, 'activated', :'tr', :'label', '/DC=test/O=PanDA/CN=Ordinary User', 'Ordinary User',
      :'site', 'TEST', 'test', :'resource', 1, 1, 1, 900, 900, 0, 0, 0, 'yes', now(), now(), now(), 'test', '', '', 'local', 'test'
    FROM (SELECT nextval('jobsdefined4_pandaid_seq') AS id FROM generate_series(1, :n)) ids RETURNING pandaid
), parameters AS (INSERT INTO jobparamstable SELECT pandaid, now(), :'params' FROM new
), files AS (
  INSERT INTO filestable4 (pandaid, guid, lfn, type, dataset, status, proddblock, proddblocktoken, dispatchdblock, dispatchdblocktoken,
      destinationdblock, destinationdblocktoken, destinationse, fsize, scope, attemptnr)
  SELECT pandaid, gen_random_uuid()::text, 'test.job.' || pandaid || '.log.tgz', 'log', 'test.logs', 'unknown', '', '', '', '',
      'test.logs', '', 'local', 0, 'test', 1 FROM new
) SELECT pandaid FROM new ORDER BY pandaid;
S
}

command_() {
  sql -q -v h="${1:?}" -v c="${2:?}" -v p="${3:-}" <<'S'
BEGIN;
DELETE FROM harvester_commands WHERE harvester_id = :'h' AND command = :'c';
INSERT INTO harvester_commands VALUES (nextval('harvester_command_id_seq'), :'c', :'h', 0, 'new', NULLIF(:'p', ''), now(), now());
COMMIT;
S
}

settle() {
  local ids; ids=$(IFS=,; echo "$*")
  sql -qAt <<S
WITH report AS (DELETE FROM job_output_report WHERE ${ids:+pandaid IN ($ids) AND} true RETURNING pandaid, jobstatus),
done AS (DELETE FROM jobsactive4 a USING report r WHERE a.pandaid = r.pandaid RETURNING a.*)
INSERT INTO jobsarchived4 SELECT * FROM done;
UPDATE jobsarchived4 SET modificationtime = now(), statechangetime = now(), jobstatus =
  CASE WHEN coalesce(piloterrorcode, 0) = 0 AND coalesce(exeerrorcode, 0) = 0 AND coalesce(transexitcode, '0') IN ('', '0') THEN 'finished' ELSE 'failed' END
  WHERE jobstatus NOT IN ('finished', 'failed', 'cancelled', 'closed') RETURNING pandaid, jobstatus;
S
}

tables() { sql -qAt -c "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname LIKE 'doma\_%' ORDER BY 1"; }

case "${1:-}" in
  site) shift; site "$@" ;;
  job) shift; job "$@" ;;
  command) shift; command_ "$@" ;;
  settle) shift; settle "$@" ;;
  tokill) shift; sql -q -c "UPDATE jobsactive4 SET commandtopilot='tobekilled' WHERE pandaid IN ($(IFS=,; echo "$*"))" ;;
  workers) sql -c 'SELECT harvesterid, workerid, status, batchid, computingsite, jobtype, resourcetype, njobs, nodeid, errorcode, diagmessage, submittime, starttime, endtime, lastupdate, pilotstatus FROM harvester_workers ORDER BY 1, 2' ;;
  jobs) sql -c "SELECT 'active' AS place, pandaid, jobstatus, computingsite, prodsourcelabel, attemptnr, modificationhost, schedulerid, batchid, transexitcode, piloterrorcode, piloterrordiag FROM jobsactive4 UNION ALL SELECT 'archived', pandaid, jobstatus, computingsite, prodsourcelabel, attemptnr, modificationhost, schedulerid, batchid, transexitcode, piloterrorcode, piloterrordiag FROM jobsarchived4 ORDER BY 2" ;;
  commands) sql -c 'SELECT command_id, harvester_id, command, status, params, creation_date, status_date FROM harvester_commands ORDER BY 1' ;;
  dump) for t in $(tables); do
      [ "$(sql -qAt -c "SELECT count(*) FROM $t")" = 0 ] || { echo "== $t"; sql -x -c "SELECT * FROM $t" | grep -vE '\| *$'; }
    done ;;
  clean) # no TRUNCATE: the server keeps a transaction open on the table config, from its start on
    { for t in $(tables | grep -v resource_types); do echo "DELETE FROM $t;"; done
      for q in harvester_command_id_seq jobsdefined4_pandaid_seq filestable4_row_id_seq; do echo "ALTER SEQUENCE $q RESTART;"; done; } | sql -q ;;
  sql) sql -c "${2:?}" ;;
  *) usage ;;
esac
