import type { Notes } from './acts.ts';

/** Notes which daemon changes workers, and which daemon takes the factory. */
export const leaderNotes: Notes = {
  begin: `
  CREATE SCHEMA campaign;
  CREATE TABLE campaign.acts (n BIGSERIAL PRIMARY KEY, application TEXT NOT NULL);
  CREATE TABLE campaign.taken (n BIGSERIAL PRIMARY KEY, epoch BIGINT NOT NULL, application TEXT NOT NULL);
  CREATE FUNCTION campaign.note_act() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO campaign.acts (application) VALUES (current_setting('application_name'));
      RETURN NULL;
    END $$;
  CREATE FUNCTION campaign.note_taken() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO campaign.taken (epoch, application) VALUES (NEW.epoch, NEW.application);
      RETURN NULL;
    END $$;
  CREATE TRIGGER note_act AFTER INSERT OR UPDATE OR DELETE ON workers
    FOR EACH STATEMENT EXECUTE FUNCTION campaign.note_act();
  CREATE TRIGGER note_taken AFTER UPDATE OF epoch ON leases
    FOR EACH ROW WHEN (OLD.epoch <> NEW.epoch) EXECUTE FUNCTION campaign.note_taken();
  INSERT INTO campaign.taken (epoch, application) SELECT epoch, application FROM leases`,
  counts: `SELECT (SELECT count(*) FROM campaign.acts) AS acts, (SELECT count(*) - 1 FROM campaign.taken) AS moves`,
  /** Acts whose commit came after another daemon had taken the factory. */
  stray: `
  WITH taken AS (SELECT epoch, application, pg_xact_commit_timestamp(xmin) AS at FROM campaign.taken),
    acts AS (SELECT n, application, pg_xact_commit_timestamp(xmin) AS at FROM campaign.acts)
  SELECT format('two leaders: %s changed workers at %s, while %s had the factory', acts.application, acts.at,
      leader.application) AS what
    FROM acts CROSS JOIN LATERAL
      (SELECT application FROM taken WHERE taken.at <= acts.at ORDER BY epoch DESC LIMIT 1) AS leader
    WHERE acts.application NOT IN (leader.application, 'thresher command') ORDER BY acts.n LIMIT 5`,
};
