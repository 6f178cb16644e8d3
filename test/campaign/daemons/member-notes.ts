import type { Notes } from './acts.ts';

/**
 * Notes which daemon changes workers of which queue, which member gets which queue, and which daemon has a member's name. A
 * request to end workers is no such change: any member may carry out that command. Neither is the deletion of old rows.
 */
export const memberNotes: Notes = {
  begin: `
  CREATE SCHEMA campaign;
  CREATE TABLE campaign.acts (n BIGSERIAL PRIMARY KEY, queue TEXT NOT NULL, application TEXT NOT NULL);
  CREATE TABLE campaign.shares (n BIGSERIAL PRIMARY KEY, item TEXT NOT NULL, shard TEXT);
  CREATE TABLE campaign.leases (n BIGSERIAL PRIMARY KEY, shard TEXT NOT NULL, application TEXT);
  CREATE INDEX ON campaign.shares (item);
  CREATE INDEX ON campaign.leases (shard);
  CREATE FUNCTION campaign.note_act() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO campaign.acts (queue, application) VALUES (NEW.queue, current_setting('application_name'));
      RETURN NULL;
    END $$;
  CREATE FUNCTION campaign.note_share() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'DELETE' THEN INSERT INTO campaign.shares (item) VALUES (OLD.item);
      ELSE INSERT INTO campaign.shares (item, shard) VALUES (NEW.item, 'member ' || NEW.member);
      END IF;
      RETURN NULL;
    END $$;
  -- A higher epoch of the same daemon is a void lease, unless it took the lease anew: the first answer may have been lost.
  CREATE FUNCTION campaign.note_lease() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'UPDATE' AND OLD.application = NEW.application AND OLD.taken_at = NEW.taken_at THEN INSERT INTO campaign.leases (shard) VALUES (NEW.shard);
      ELSE INSERT INTO campaign.leases (shard, application) VALUES (NEW.shard, NEW.application);
      END IF;
      RETURN NULL;
    END $$;
  CREATE TRIGGER note_new AFTER INSERT ON workers FOR EACH ROW EXECUTE FUNCTION campaign.note_act();
  CREATE TRIGGER note_change AFTER UPDATE ON workers
    FOR EACH ROW WHEN (OLD.kill_time IS NOT DISTINCT FROM NEW.kill_time) EXECUTE FUNCTION campaign.note_act();
  CREATE TRIGGER note_share AFTER INSERT OR UPDATE OR DELETE ON shares
    FOR EACH ROW EXECUTE FUNCTION campaign.note_share();
  CREATE TRIGGER note_first_lease AFTER INSERT ON leases FOR EACH ROW EXECUTE FUNCTION campaign.note_lease();
  CREATE TRIGGER note_lease AFTER UPDATE ON leases
    FOR EACH ROW WHEN (OLD.epoch <> NEW.epoch) EXECUTE FUNCTION campaign.note_lease();
  INSERT INTO campaign.shares (item, shard) SELECT item, 'member ' || member FROM shares;
  INSERT INTO campaign.leases (shard, application) SELECT shard, application FROM leases`,
  counts: `SELECT (SELECT count(*) FROM campaign.acts) AS acts, (SELECT count(*) FROM (
      SELECT shard, lag(shard) OVER (PARTITION BY item ORDER BY n) AS former FROM campaign.shares WHERE item LIKE 'queue %'
    ) AS had WHERE shard <> former) AS moves`,
  /** Acts whose commit came after another member had got the queue, or after the lease of the daemon was void or another one's. */
  stray: `
  WITH shares AS MATERIALIZED (SELECT n, item, shard, pg_xact_commit_timestamp(xmin) AS at FROM campaign.shares),
    leases AS MATERIALIZED (SELECT n, shard, application, pg_xact_commit_timestamp(xmin) AS at FROM campaign.leases),
    daemons AS MATERIALIZED (SELECT DISTINCT application, shard FROM leases WHERE application IS NOT NULL),
    acts AS MATERIALIZED (SELECT n, queue, application, pg_xact_commit_timestamp(xmin) AS at FROM campaign.acts
      WHERE application <> 'thresher command')
  SELECT CASE WHEN holder.shard IS DISTINCT FROM daemons.shard
      THEN format('two members: %s (%s) changed workers of %s at %s, while %s had that queue', acts.application, daemons.shard,
        acts.queue, acts.at, coalesce(holder.shard, 'no member'))
      ELSE format('a void lease: %s (%s) changed workers of %s at %s, after another daemon had ended its lease', acts.application,
        daemons.shard, acts.queue, acts.at) END AS what
    FROM acts LEFT JOIN daemons USING (application)
      LEFT JOIN LATERAL (SELECT shares.shard FROM shares WHERE item = 'queue ' || acts.queue AND shares.at <= acts.at
        ORDER BY shares.at DESC, shares.n DESC LIMIT 1) AS holder ON true
      LEFT JOIN LATERAL (SELECT leases.application FROM leases WHERE leases.shard = daemons.shard AND leases.at <= acts.at
        ORDER BY leases.at DESC, leases.n DESC LIMIT 1) AS latest ON true
    WHERE holder.shard IS DISTINCT FROM daemons.shard OR latest.application IS DISTINCT FROM acts.application
    ORDER BY acts.n LIMIT 5`,
};
