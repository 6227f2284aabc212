-- A version that is never released: what a script to the next version may do. The test of
-- upgrades installs it (test/tap/065_upgrade.pl), and nothing else does.
\echo Use "ALTER EXTENSION lease UPDATE TO '1.1'" to load this file. \quit

ALTER TABLE dist_lock ADD COLUMN note text COLLATE "C" DEFAULT 'none';
COMMENT ON COLUMN dist_lock.note IS 'What the last holder wanted it for.';

CREATE FUNCTION lease_answer()
RETURNS integer
AS 'MODULE_PATHNAME', 'lease_answer'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

REVOKE ALL ON FUNCTION lease_answer() FROM PUBLIC;
COMMENT ON FUNCTION lease_answer() IS 'The answer.';

CREATE VIEW lease_notes AS SELECT d.name, d.note FROM ONLY dist_lock AS d;
GRANT SELECT ON lease_notes TO PUBLIC;
COMMENT ON VIEW lease_notes IS 'The notes.';
COMMENT ON COLUMN lease_notes.name IS 'Name of the lease.';
COMMENT ON COLUMN lease_notes.note IS 'Its note.';

COMMENT ON FUNCTION lease_token(text, text) IS 'As in 1.1.';
