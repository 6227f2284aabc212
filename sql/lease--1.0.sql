-- lease 1.0: the table that holds the leases, the sequence of their tokens, and
-- the functions. Run by CREATE EXTENSION only.
\echo Use "CREATE EXTENSION lease" to load this file. \quit

-- Every function and operator that this script calls is named with its schema,
-- and every object is made by a bare CREATE: it fails where somebody has made
-- one of that name before, and adopts nothing.

CREATE TABLE dist_lock (
    name          text COLLATE "C" NOT NULL
                  CHECK (pg_catalog.octet_length(name) OPERATOR(pg_catalog.>=) 1
                     AND pg_catalog.octet_length(name) OPERATOR(pg_catalog.<=) 255),
    owner         text COLLATE "C"
                  CHECK (pg_catalog.octet_length(owner) OPERATOR(pg_catalog.>=) 1
                     AND pg_catalog.octet_length(owner) OPERATOR(pg_catalog.<=) 255),
    expiry        timestamptz,
    token         bigint NOT NULL,
    granted_to    text COLLATE "C",
    acquired_at   timestamptz,
    renewed_at    timestamptz,
    ttl           interval,
    session_pid   integer,
    session_start timestamptz,
    grants        bigint NOT NULL DEFAULT 0,
    takeovers     bigint NOT NULL DEFAULT 0,
    min_margin    interval,
    last_owner    text COLLATE "C",
    last_end      text COLLATE "C",
    PRIMARY KEY (name)
)
USING heap
WITH (
    -- Half of every page and more is room for the next version of its rows, so
    -- that renewing all of them in one transaction stays HOT.
    fillfactor = 40,
    -- Giving the table's tail back to the system would lock everybody out.
    vacuum_truncate = off,
    -- Dead rows come with calls, not with the size of the table.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000
);

-- By what the keeper finds its leases. Of leases that are not bound to a session
-- it has no entry, so that renewing those stays HOT.
CREATE INDEX dist_lock_session ON dist_lock (session_pid) WHERE session_pid IS NOT NULL;

REVOKE ALL ON TABLE dist_lock FROM PUBLIC;
-- A column of its row type in anybody's table would keep an update from altering it.
REVOKE ALL ON TYPE dist_lock FROM PUBLIC;
-- That is noted as a right that the extension gave, and pg_dump, which knows no rights of row types,
-- would warn of the note each time. What leaves an extension loses its notes; from PostgreSQL 17 on
-- row types are in it, before they are not. (There the table leaves the extension only with its
-- row type: who wants that by hand begins with ALTER EXTENSION lease ADD TYPE dist_lock.)
DO LANGUAGE plpgsql '
BEGIN
    ALTER EXTENSION lease ADD TYPE dist_lock;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    NULL;
END';
ALTER EXTENSION lease DROP TYPE dist_lock;

COMMENT ON TABLE dist_lock IS 'The leases, a row each. Read it through the functions of the extension "lease"; a row made or changed by hand is honoured.';
COMMENT ON COLUMN dist_lock.name IS 'Name of the lease, 1 to 255 bytes, compared byte by byte.';
COMMENT ON COLUMN dist_lock.owner IS 'Owner of the tenure that runs or ran last; NULL once it was released or broken.';
COMMENT ON COLUMN dist_lock.expiry IS 'With an owner: the tenure is live before this instant. Without: nobody gets the lease before this instant. NULL: anybody may take it.';
COMMENT ON COLUMN dist_lock.token IS 'Fencing token of the last tenure; rises with each tenure.';
COMMENT ON COLUMN dist_lock.granted_to IS 'Role that the last tenure was granted to; NULL (rows made by hand) binds it to no role.';
COMMENT ON COLUMN dist_lock.acquired_at IS 'When the last tenure began.';
COMMENT ON COLUMN dist_lock.renewed_at IS 'When the last tenure was last renewed; at first, when it began.';
COMMENT ON COLUMN dist_lock.ttl IS 'Time to live that the last grant or renewal asked for.';
COMMENT ON COLUMN dist_lock.session_pid IS 'Process ID of the session that the tenure is bound to, if any.';
COMMENT ON COLUMN dist_lock.session_start IS 'When that session began: process IDs come back.';
COMMENT ON COLUMN dist_lock.grants IS 'How many tenures of this lease were granted.';
COMMENT ON COLUMN dist_lock.takeovers IS 'How many of them followed a tenure that had expired: its holder died or was too slow.';
COMMENT ON COLUMN dist_lock.min_margin IS 'The least time that was left at a renewal of the last tenure; NULL before its first.';
COMMENT ON COLUMN dist_lock.last_owner IS 'Owner of the last tenure that ended and was seen to end.';
COMMENT ON COLUMN dist_lock.last_end IS 'How that tenure ended: released, expired or broken.';

-- The tokens. It starts at the clock, in microseconds since 1970, so that an
-- extension dropped and made again, or a table restored into a new database,
-- goes on above every token ever given. It is kept out of dumps for the same
-- reason: a restored sequence would be set back.
CREATE SEQUENCE dist_lock_token AS bigint CACHE 1;
REVOKE ALL ON SEQUENCE dist_lock_token FROM PUBLIC;
COMMENT ON SEQUENCE dist_lock_token IS 'The fencing tokens of all leases. Never set it back.';

SELECT pg_catalog.setval('dist_lock_token'::pg_catalog.regclass,
    (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())
        OPERATOR(pg_catalog.*) 1000000.0::pg_catalog.float8)::pg_catalog.int8);

SELECT pg_catalog.pg_extension_config_dump('dist_lock'::pg_catalog.regclass, '');

-- The cost is high so that a planner calls these after every cheaper filter of
-- a query: a lease taken for a row that the next filter drops helps nobody.

CREATE FUNCTION lease_try(name text, owner text, ttl interval)
RETURNS boolean
AS 'MODULE_PATHNAME', 'lease_try'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION lease_try(text, text, interval) IS
'Takes the lease "name" for "owner" until "ttl" from now, if nobody holds it; if that owner holds it already, sets its expiry to "ttl" from now and keeps the token. Never waits for another owner. Returns whether the owner holds it.';

CREATE FUNCTION lease_try_any(names text[], owner text, ttl interval)
RETURNS text
AS 'MODULE_PATHNAME', 'lease_try_any'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION lease_try_any(text[], text, interval) IS
'Takes one of several interchangeable leases: the one that "owner" holds already (its expiry is set to "ttl" from now), else the first that is free. Returns its name, or NULL if all are busy.';

CREATE FUNCTION lease_renew(name text, owner text, ttl interval, token bigint DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'lease_renew'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION lease_renew(text, text, interval, bigint) IS
'Sets the expiry of the tenure that "owner" holds (the very one with "token", if given) to "ttl" from now. Returns false if it is not held any more: an expired tenure is lost, even if nobody else took it.';

CREATE FUNCTION lease_renew_all(names text[], owner text, ttl interval)
RETURNS text[]
AS 'MODULE_PATHNAME', 'lease_renew_all'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION lease_renew_all(text[], text, interval) IS
'Renews all of these leases that "owner" holds, in one transaction. Returns the names renewed, in the order given, each once.';

CREATE FUNCTION lease_release(name text, owner text, keep interval DEFAULT NULL, token bigint DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME', 'lease_release'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION lease_release(text, text, interval, bigint) IS
'Ends the tenure that "owner" holds (the very one with "token", if given). With "keep", nobody gets the lease before that long after it was acquired. Returns false, with a warning that says why, if there was nothing to end.';

CREATE FUNCTION lease_token(name text, owner text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'lease_token'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION lease_token(text, text) IS
'The fencing token of the lease "name" if "owner" holds it at this moment, else NULL.';

CREATE FUNCTION lease_fence(name text, token bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'lease_fence'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION lease_fence(text, bigint) IS
'Call it first in the transaction that writes: raises SQLSTATE LEASE unless "token" is the live tenure of the lease "name", and then keeps every takeover, release and break of it out until this transaction ends.';

CREATE FUNCTION lease_fenced()
RETURNS trigger
AS 'MODULE_PATHNAME', 'lease_fenced'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION lease_fenced() IS
'Trigger, with the name of a lease as its argument: the table can only be written by a transaction that has passed lease_fence() on that lease.';

CREATE PROCEDURE lease_acquire(name text, owner text, ttl interval, wait interval DEFAULT NULL, INOUT token bigint DEFAULT NULL)
AS 'MODULE_PATHNAME', 'lease_acquire'
LANGUAGE C;

COMMENT ON PROCEDURE lease_acquire(text, text, interval, interval, bigint) IS
'Waits its turn for the lease "name", first come first served, at most "wait" (NULL: for ever), and takes it for "owner" until "ttl" from the grant. Returns the token, or NULL if the time was up. An owner that holds it gets its token at once, extended.';

CREATE PROCEDURE lease_watch(name text, known bigint, wait interval DEFAULT NULL, INOUT token bigint DEFAULT NULL)
AS 'MODULE_PATHNAME', 'lease_watch'
LANGUAGE C;

COMMENT ON PROCEDURE lease_watch(text, bigint, interval, bigint) IS
'Waits until the live token of the lease "name" is another than "known" (NULL: nobody holds it), at most "wait" (NULL: for ever). Returns the live token, NULL if nobody holds the lease, or "known" if the time was up.';

CREATE FUNCTION lease_attach(name text, owner text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'lease_attach'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION lease_attach(text, text) IS
'Binds the tenure that "owner" holds to this session: the server renews it, with the ttl that it had last, while the session lives, and releases it when the session ends. Returns false if the owner does not hold it.';

CREATE FUNCTION lease_detach(name text, owner text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'lease_detach'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION lease_detach(text, text) IS
'Undoes lease_attach(): the tenure goes on, and ends at its expiry if nobody renews it. Returns false if it is not bound to this session.';

-- What an administrator does to other people's leases.

CREATE FUNCTION lease_break(name text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'lease_break'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

REVOKE ALL ON FUNCTION lease_break(text) FROM PUBLIC;

COMMENT ON FUNCTION lease_break(text) IS
'Ends whoever''s tenure of the lease "name", or the time for which it is kept from everybody. Waits for transactions behind its fence. Returns false if there was nothing to end.';

CREATE FUNCTION lease_purge(idle interval)
RETURNS bigint
AS 'MODULE_PATHNAME', 'lease_purge'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

REVOKE ALL ON FUNCTION lease_purge(interval) FROM PUBLIC;

COMMENT ON FUNCTION lease_purge(interval) IS
'Deletes the rows of leases that nobody has held for at least "idle", and returns how many. Skips those that another session is busy on.';

CREATE FUNCTION lease_activity(OUT name text, OUT pid integer, OUT kind text, OUT waits_since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'lease_activity'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION lease_activity() IS
'The rows of the view "lease_waiters", without positions.';

CREATE VIEW lease_waiters AS
SELECT a.name,
       a.pid,
       a.kind,
       CASE WHEN a.kind OPERATOR(pg_catalog.=) 'acquire'
            THEN pg_catalog.row_number() OVER (PARTITION BY a.name, a.kind ORDER BY a.waits_since NULLS FIRST, a.pid)
       END AS position,
       COALESCE(a.waits_since, s.xact_start) AS since
FROM lease_activity() AS a
     LEFT JOIN pg_catalog.pg_stat_activity AS s ON s.pid OPERATOR(pg_catalog.=) a.pid;

GRANT SELECT ON lease_waiters TO PUBLIC;

COMMENT ON VIEW lease_waiters IS 'Sessions that wait for a lease or are in the middle of one.';
COMMENT ON COLUMN lease_waiters.name IS 'Name of the lease; NULL if it has no row yet.';
COMMENT ON COLUMN lease_waiters.pid IS 'Process ID of the session; NULL for a prepared transaction.';
COMMENT ON COLUMN lease_waiters.kind IS 'What it does: acquire (waits its turn), watch, fence (is behind the fence, or waits to be), busy (a grant, renewal, release or break that has not committed).';
COMMENT ON COLUMN lease_waiters.position IS 'Place in the queue, from 1; NULL for all but acquire.';
COMMENT ON COLUMN lease_waiters.since IS 'Since when it waits; for who does not wait, since when its transaction is open (shown to its own role and to pg_read_all_stats).';

-- The owner is a secret of sorts: whoever knows it and has the role can release.
CREATE VIEW leases AS
SELECT d.name,
       CASE WHEN r.may_see THEN d.owner END AS owner,
       r.state,
       d.token,
       d.granted_to AS role,
       d.acquired_at,
       d.renewed_at,
       d.expiry,
       CASE WHEN d.expiry OPERATOR(pg_catalog.=) 'infinity'::pg_catalog.timestamptz THEN NULL
            WHEN d.expiry OPERATOR(pg_catalog.>) c.now THEN d.expiry OPERATOR(pg_catalog.-) c.now
            ELSE '0'::pg_catalog.interval
       END AS remaining,
       d.session_pid,
       COALESCE(w.waiters, 0) AS waiters,
       d.grants,
       d.takeovers,
       d.min_margin,
       CASE WHEN r.may_see THEN
           CASE WHEN r.state OPERATOR(pg_catalog.=) 'expired' THEN d.owner ELSE d.last_owner END
       END AS last_owner,
       CASE WHEN r.state OPERATOR(pg_catalog.=) 'expired' THEN 'expired' ELSE d.last_end END AS last_end
FROM ONLY dist_lock AS d
     CROSS JOIN (SELECT pg_catalog.clock_timestamp() AS now OFFSET 0) AS c
     CROSS JOIN LATERAL (
         SELECT CASE WHEN d.expiry OPERATOR(pg_catalog.>) c.now
                     THEN CASE WHEN d.owner IS NOT NULL THEN 'held' ELSE 'cooling' END
                     WHEN d.owner IS NOT NULL AND d.expiry IS NOT NULL THEN 'expired'
                     ELSE 'free'
                END AS state,
                pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')
                OR EXISTS (SELECT FROM pg_catalog.pg_roles AS o
                           WHERE o.rolname OPERATOR(pg_catalog.=) d.granted_to::pg_catalog.name
                             AND pg_catalog.pg_has_role(o.oid, 'USAGE')) AS may_see
     ) AS r
     LEFT JOIN (SELECT l.name, pg_catalog.count(*) AS waiters
                FROM lease_waiters AS l
                WHERE l.kind OPERATOR(pg_catalog.=) 'acquire'
                GROUP BY l.name) AS w
            ON w.name OPERATOR(pg_catalog.=) d.name;

GRANT SELECT ON leases TO PUBLIC;

COMMENT ON VIEW leases IS 'The leases, as they are at this moment.';
COMMENT ON COLUMN leases.name IS 'Name of the lease.';
COMMENT ON COLUMN leases.owner IS 'Owner of the tenure; NULL to who has neither the holder''s role nor pg_read_all_stats.';
COMMENT ON COLUMN leases.state IS 'held, expired (a tenure ran out and nobody has taken over), cooling (kept from everybody for a while) or free.';
COMMENT ON COLUMN leases.token IS 'Fencing token of the last tenure.';
COMMENT ON COLUMN leases.role IS 'Role that the last tenure was granted to.';
COMMENT ON COLUMN leases.acquired_at IS 'When the last tenure began.';
COMMENT ON COLUMN leases.renewed_at IS 'When it was last renewed; at first, when it began.';
COMMENT ON COLUMN leases.expiry IS 'When the tenure or the cooling time ends, or ended.';
COMMENT ON COLUMN leases.remaining IS 'Time until then; 0 when it is over, NULL for an infinite expiry made by hand.';
COMMENT ON COLUMN leases.session_pid IS 'Process ID of the session that the tenure is bound to, if any.';
COMMENT ON COLUMN leases.waiters IS 'How many sessions wait their turn.';
COMMENT ON COLUMN leases.grants IS 'How many tenures were granted.';
COMMENT ON COLUMN leases.takeovers IS 'How many of them followed a tenure that had expired.';
COMMENT ON COLUMN leases.min_margin IS 'The least time that was left at a renewal of the last tenure: what to choose a ttl by.';
COMMENT ON COLUMN leases.last_owner IS 'Owner of the last tenure that ended; masked like the owner.';
COMMENT ON COLUMN leases.last_end IS 'How that tenure ended: released, expired or broken.';
