-- The tables that panda-server 1.0.4 touches in the harvester and pilot API, and nothing else.
--
-- Written for these tests. The names are those that the server's statements use (a table or column
-- that is missing shows as UndefinedTable or UndefinedColumn in log/panda-DBProxy.log); types, keys
-- and defaults are our own choice. Text is unbounded, except the two widths that a client is known
-- to run into: batchID (80) and diagMessage (500).
-- Applied at every start: everything is IF NOT EXISTS.

SET client_min_messages TO warning;
CREATE SCHEMA IF NOT EXISTS doma_panda;      -- ATLAS_PANDA in the server's code
CREATE SCHEMA IF NOT EXISTS doma_pandaarch;  -- ATLAS_PANDAARCH
CREATE SCHEMA IF NOT EXISTS doma_pandameta;  -- ATLAS_PANDAMETA
SET search_path TO doma_panda;

-- ---- harvester ---------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS harvester_instances (
  harvester_id text PRIMARY KEY,
  description  text,
  owner        text,
  hostname     text,
  starttime    timestamp,
  lastupdate   timestamp,
  sw_version   text,
  commit_stamp text
);

CREATE TABLE IF NOT EXISTS harvester_workers (
  harvesterid      text,
  workerid         bigint,
  batchid          varchar(80),
  queuename        text,
  status           text,
  computingsite    text,
  ncore            integer,
  nodeid           text,
  submittime       timestamp,
  starttime        timestamp,
  endtime          timestamp,
  lastupdate       timestamp,
  stdout           text,
  stderr           text,
  batchlog         text,
  jdl              text,
  resourcetype     text,
  nativeexitcode   integer,
  nativestatus     text,
  diagmessage      varchar(500),
  njobs            integer,
  computingelement text,
  submissionhost   text,
  harvesterhost    text,
  errorcode        integer,
  jobtype          text,
  minramcount      bigint,
  pilotstatus      text,
  pilotstarttime   timestamp,
  pilotendtime     timestamp,
  PRIMARY KEY (harvesterid, workerid)
);

CREATE TABLE IF NOT EXISTS harvester_rel_jobs_workers (
  harvesterid text,
  workerid    bigint,
  pandaid     bigint,
  lastupdate  timestamp,
  PRIMARY KEY (harvesterid, workerid, pandaid)
);

CREATE TABLE IF NOT EXISTS harvester_worker_stats (
  harvester_id  text,
  computingsite text,
  jobtype       text,
  resourcetype  text,
  status        text,
  n_workers     integer,
  lastupdate    timestamp
);

CREATE SEQUENCE IF NOT EXISTS harvester_command_id_seq;
CREATE TABLE IF NOT EXISTS harvester_commands (
  command_id    bigint PRIMARY KEY,
  command       text,
  harvester_id  text,
  ack_requested smallint,
  status        text,          -- new, retrieved, acknowledged
  params        text,
  creation_date timestamp,
  status_date   timestamp
);

CREATE TABLE IF NOT EXISTS harvester_command_lock (
  harvester_id  text,
  computingsite text,
  resourcetype  text,
  command       text,
  lockedtime    timestamp,
  lockedby      text
);

CREATE TABLE IF NOT EXISTS harvester_dialogs (
  harvester_id text,
  diagid       bigint,
  modulename   text,
  identifier   text,
  creationtime timestamp,
  messagelevel text,
  diagmessage  varchar(500),
  PRIMARY KEY (harvester_id, diagid)
);

CREATE TABLE IF NOT EXISTS harvester_metrics (
  harvester_id   text,
  creation_time  timestamp,
  harvester_host text,
  metrics        text
);

CREATE TABLE IF NOT EXISTS harvester_slots (
  pandaqueuename text,
  gshare         text,
  resourcetype   text,
  numslots       integer,
  expirationtime timestamp
);

-- ---- queues ------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS schedconfig_json (
  panda_queue text PRIMARY KEY,
  data        jsonb,
  last_update timestamp
);
CREATE TABLE IF NOT EXISTS panda_site (panda_site_name text PRIMARY KEY, site_name text);
CREATE TABLE IF NOT EXISTS site (site_name text PRIMARY KEY, role text);
CREATE TABLE IF NOT EXISTS ddm_endpoint (
  ddm_endpoint_name   text PRIMARY KEY,
  ddm_spacetoken_name text,
  is_tape             text,
  blacklisted_read    text,
  detailed_status     jsonb
);
CREATE TABLE IF NOT EXISTS panda_ddm_relation (
  panda_site_name   text,
  ddm_endpoint_name text,
  is_local          text,
  default_read      text,
  default_write     text,
  roles             text,
  order_read        integer,
  order_write       integer,
  scope             text
);
CREATE TABLE IF NOT EXISTS resource_types (
  resource_name text PRIMARY KEY,
  mincore       integer,
  maxcore       integer,
  minrampercore integer,
  maxrampercore integer
);
INSERT INTO resource_types VALUES
  ('SCORE', 1, 1, NULL, 2000), ('SCORE_HIMEM', 1, 1, 2000, NULL),
  ('MCORE', 2, NULL, NULL, 2000), ('MCORE_HIMEM', 2, NULL, 2000, NULL)
  ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS config (
  app text, component text, key text, vo text, value text, value_json text, type text
);
CREATE TABLE IF NOT EXISTS global_shares (
  name text PRIMARY KEY, value numeric, parent text, prodsourcelabel text, workinggroup text, campaign text,
  processingtype text, transpath text, rtype text, vo text, queue_id integer, throttled text
);
CREATE TABLE IF NOT EXISTS jobs_share_stats (gshare text, jobstatus text, computingsite text, hs numeric);

-- ---- jobs --------------------------------------------------------------------------------------

CREATE SEQUENCE IF NOT EXISTS jobsdefined4_pandaid_seq;
CREATE SEQUENCE IF NOT EXISTS filestable4_row_id_seq;

-- jobMetrics and the like are measured by the pilot, hence numeric wherever it may send a fraction
CREATE TABLE IF NOT EXISTS jobsactive4 (
  pandaid bigint PRIMARY KEY, jobdefinitionid bigint, schedulerid text, pilotid text,
  creationtime timestamp, creationhost text, modificationtime timestamp, modificationhost text,
  atlasrelease text, transformation text, homepackage text, prodserieslabel text, prodsourcelabel text,
  produserid text, assignedpriority integer, currentpriority integer, attemptnr integer, maxattempt integer,
  jobstatus text, jobname text, maxcpucount bigint, maxcpuunit text, maxdiskcount bigint, maxdiskunit text,
  ipconnectivity text, minramcount bigint, minramunit text, starttime timestamp, endtime timestamp,
  cpuconsumptiontime bigint, cpuconsumptionunit text, commandtopilot text, transexitcode text,
  piloterrorcode integer, piloterrordiag text, exeerrorcode integer, exeerrordiag text,
  superrorcode integer, superrordiag text, ddmerrorcode integer, ddmerrordiag text,
  brokerageerrorcode integer, brokerageerrordiag text, jobdispatchererrorcode integer, jobdispatchererrordiag text,
  taskbuffererrorcode integer, taskbuffererrordiag text, computingsite text, computingelement text,
  jobparameters text, metadata text, proddblock text, dispatchdblock text, destinationdblock text, destinationse text,
  nevents bigint, grid text, cloud text, cpuconversion numeric, sourcesite text, destinationsite text,
  transfertype text, taskid bigint, cmtconfig text, statechangetime timestamp, proddbupdatetime timestamp,
  lockedby text, relocationflag integer, jobexecutionid bigint, vo text, pilottiming text, workinggroup text,
  processingtype text, produsername text, ninputfiles integer, countrygroup text, batchid text, parentid bigint,
  specialhandling text, jobsetid bigint, corecount integer, ninputdatafiles integer, inputfiletype text,
  inputfileproject text, inputfilebytes bigint, noutputdatafiles integer, outputfilebytes bigint, jobmetrics text,
  workqueue_id integer, jeditaskid bigint, jobsubstatus text, actualcorecount integer, reqid bigint,
  maxrss numeric, maxvmem numeric, maxswap numeric, maxpss numeric,
  avgrss numeric, avgvmem numeric, avgswap numeric, avgpss numeric,
  maxwalltime bigint, nucleus text, eventservice integer, failedattempt integer, hs06sec bigint, gshare text, hs06 integer,
  totrchar numeric, totwchar numeric, totrbytes numeric, totwbytes numeric,
  raterchar numeric, ratewchar numeric, raterbytes numeric, ratewbytes numeric,
  resource_type text, diskio integer, memory_leak numeric, memory_leak_x2 numeric, container_name text, job_label text,
  gco2_regional numeric, gco2_global numeric, cpu_architecture_level text, outputfiletype text,
  meancorecount numeric
);
CREATE INDEX IF NOT EXISTS jobsactive4_site ON jobsactive4 (computingsite, jobstatus);
CREATE TABLE IF NOT EXISTS jobsdefined4 (LIKE jobsactive4 INCLUDING INDEXES);
CREATE TABLE IF NOT EXISTS jobsarchived4 (LIKE jobsactive4 INCLUDING INDEXES);
-- A materialized view in production.
CREATE OR REPLACE VIEW mv_jobsactive4_stats AS
  SELECT computingsite, jobstatus, resource_type, prodsourcelabel, count(*)::int AS num_of_jobs, sum(corecount)::int AS num_of_cores
    FROM jobsactive4 GROUP BY computingsite, jobstatus, resource_type, prodsourcelabel;
CREATE TABLE IF NOT EXISTS doma_pandaarch.jobsarchived (LIKE jobsactive4 INCLUDING INDEXES);

CREATE TABLE IF NOT EXISTS filestable4 (
  row_id bigint PRIMARY KEY DEFAULT nextval('doma_panda.filestable4_row_id_seq'),
  pandaid bigint, guid text, lfn text, type text, dataset text, status text,
  proddblock text, proddblocktoken text, dispatchdblock text, dispatchdblocktoken text,
  destinationdblock text, destinationdblocktoken text, destinationse text,
  fsize bigint, md5sum text, checksum text, scope text,
  jeditaskid bigint, datasetid bigint, fileid bigint, attemptnr integer,
  modificationtime timestamp
);
CREATE INDEX IF NOT EXISTS filestable4_pandaid ON filestable4 (pandaid);
CREATE TABLE IF NOT EXISTS jobparamstable (pandaid bigint PRIMARY KEY, modificationtime timestamp, jobparameters text);
CREATE TABLE IF NOT EXISTS metatable (pandaid bigint PRIMARY KEY, modificationtime timestamp, metadata text);
CREATE TABLE IF NOT EXISTS jobsdebug (pandaid bigint PRIMARY KEY, stdout text);
CREATE TABLE IF NOT EXISTS job_output_report (
  pandaid bigint, attemptnr integer, prodsourcelabel text, jobstatus text, data text,
  timestamp timestamp, lockedby text, lockedtime timestamp,
  PRIMARY KEY (pandaid, attemptnr)
);
CREATE TABLE IF NOT EXISTS pandalog (
  bintime timestamp, name text, module text, type text, pid bigint, loglevel integer, levelname text,
  time timestamp, filename text, message text
);

-- ---- worker nodes, as pilots report them -------------------------------------------------------

CREATE TABLE IF NOT EXISTS worker_node (
  site text, host_name text, cpu_model text, cpu_model_normalized text, n_logical_cpus integer, n_sockets integer,
  cores_per_socket integer, threads_per_core integer, cpu_architecture text, cpu_architecture_level text,
  clock_speed numeric, total_memory bigint, total_local_disk bigint, last_seen timestamp
);
CREATE TABLE IF NOT EXISTS worker_node_queue (site text, host_name text, panda_queue text, last_seen timestamp);
CREATE TABLE IF NOT EXISTS worker_node_gpus (
  site text, host_name text, vendor text, model text, count integer, vram bigint, architecture text,
  framework text, framework_version text, driver_version text, last_seen timestamp
);

-- ---- users -------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS doma_pandameta.users (name text, dn text, status text, gridpref text);
CREATE TABLE IF NOT EXISTS doma_pandameta.proxykey (
  id integer, dn text, credname text, created timestamp, expires timestamp, origin text, myproxy text
);
CREATE TABLE IF NOT EXISTS doma_pandameta.sitedata (site text, hours integer, flag text, laststart timestamp);
