-- Rows that somebody made or changed by hand are honoured, and never make two
-- holders.
CREATE EXTENSION lease;
\set VERBOSITY terse

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/outcome.sql'
\i :include

-- Held for ever: nobody else gets it. The owner can renew it, to an expiry, and
-- release it.
INSERT INTO dist_lock (name, owner, expiry, token) VALUES ('for ever', 'x', 'infinity', 7), ('for ever 2', 'x', 'infinity', 7);
SELECT lease_try('for ever', 'y', '1 h'), lease_try_any(ARRAY['for ever', 'for ever 2'], 'y', '1 h'), lease_token('for ever', 'x'), lease_token('for ever', 'y');
SELECT lease_renew('for ever', 'x', '1 h'), lease_renew('for ever', 'x', '1 h', 8) AS wrong_token;
SELECT owner, token, isfinite(expiry) AS finite, expiry = renewed_at + interval '1 h' AS expiry, ttl, min_margin, acquired_at, grants FROM dist_lock WHERE name = 'for ever';
SELECT lease_release('for ever 2', 'y');
SELECT lease_release('for ever 2', 'x'), lease_try('for ever 2', 'y', '1 h');

-- Free since ever.
INSERT INTO dist_lock (name, owner, expiry, token) VALUES ('past', 'x', '-infinity', 7);
SELECT lease_token('past', 'x'), lease_renew('past', 'x', '1 h');
SELECT lease_release('past', 'x');
SELECT lease_try('past', 'y', '1 h');
SELECT owner, token > 7 AS higher, grants FROM dist_lock WHERE name = 'past';

-- An owner without an expiry holds nothing.
INSERT INTO dist_lock (name, owner, token) VALUES ('no expiry', 'x', 7), ('no expiry 2', 'x', 7);
SELECT lease_token('no expiry', 'x'), lease_renew('no expiry', 'x', '1 h');
SELECT lease_release('no expiry', 'x');
SELECT lease_try('no expiry', 'y', '1 h'), lease_try('no expiry 2', 'x', '1 h');
SELECT name, owner, token > 7 AS higher FROM dist_lock WHERE name LIKE 'no expiry%' ORDER BY name;

-- Nobody holds it, and nobody gets it.
INSERT INTO dist_lock (name, expiry, token) VALUES ('closed', 'infinity', 7), ('closed 2', now() + interval '1 h', 7);
SELECT lease_try('closed', 'y', '1 h'), lease_try('closed 2', 'y', '1 h'), lease_try_any(ARRAY['closed', 'closed 2'], 'y', '1 h'),
       lease_renew('closed', 'y', '1 h'), lease_token('closed', 'y');
SELECT lease_release('closed', 'y');
SELECT lease_release('closed 2', 'y');

-- Nobody, and no expiry: free.
INSERT INTO dist_lock (name, token) VALUES ('empty', 7);
SELECT lease_try('empty', 'y', '1 h');

-- Held, with nothing else known of the tenure.
INSERT INTO dist_lock (name, owner, expiry, token) VALUES ('bare', 'x', now() + interval '1 h', 7), ('bare 2', 'x', now() + interval '1 h', 7), ('bare 3', 'x', now() + interval '1 h', 7);
SELECT lease_try('bare', 'y', '1 h'), lease_try('bare', 'x', '2 h'), lease_token('bare', 'x');
SELECT lease_release('bare', 'x', '1 h', 7);
SELECT lease_renew_all(ARRAY['bare', 'bare 2'], 'x', '1 h'), lease_try_any(ARRAY['bare', 'bare 2'], 'x', '1 h');
UPDATE dist_lock SET expiry = clock_timestamp() WHERE name = 'bare 3';
SELECT lease_try('bare 3', 'y', '1 h');
SELECT takeovers, last_owner, last_end FROM dist_lock WHERE name = 'bare 3';

-- The farthest expiry that there is.
INSERT INTO dist_lock (name, owner, expiry, token) VALUES ('farthest', 'x', '294276-12-31 23:59:59.999999 UTC', 7);
SELECT lease_try('farthest', 'y', '1 h'), lease_renew('farthest', 'x', '1 h');
SELECT min_margin > '290000 years' AS min_margin FROM dist_lock WHERE name = 'farthest';
-- And an instant of beginning that no time to keep can be counted from.
UPDATE dist_lock SET acquired_at = '294276-12-31 UTC' WHERE name = 'farthest';
SELECT outcome($$SELECT lease_release('farthest', 'x', '10 days')$$);
SELECT lease_token('farthest', 'x');
UPDATE dist_lock SET acquired_at = 'infinity' WHERE name = 'farthest';
SELECT outcome($$SELECT lease_release('farthest', 'x', '10 days')$$);
UPDATE dist_lock SET acquired_at = '-infinity' WHERE name = 'farthest';
SELECT outcome($$SELECT lease_release('farthest', 'x', '10 days')$$);

-- Tokens at the border of their type. The last of them is given; after it
-- there is none, and that is an error. What is held goes on.
INSERT INTO dist_lock (name, owner, expiry, token) VALUES
    ('max', NULL, NULL, 9223372036854775807), ('max held', 'x', now() + interval '1 h', 9223372036854775807),
    ('negative', NULL, NULL, -9223372036854775808), ('zero', NULL, NULL, 0);
SELECT outcome($$SELECT lease_try('max', 'x', '1 h')$$), outcome($$SELECT lease_try_any(ARRAY['max'], 'x', '1 h')$$);
SELECT lease_try('max held', 'y', '1 h'), lease_renew('max held', 'x', '1 h'), lease_try('max held', 'x', '1 h'), lease_token('max held', 'x');
SELECT lease_release('max held', 'x', token => 9223372036854775807);
SELECT outcome($$SELECT lease_try('max held', 'x', '1 h')$$);
SELECT owner, token FROM dist_lock WHERE name LIKE 'max%';
SELECT lease_try('negative', 'x', '1 h'), lease_try('zero', 'x', '1 h'), lease_try('other', 'x', '1 h');
SELECT count(*) FROM dist_lock WHERE name IN ('negative', 'zero', 'other') AND token > 1000000000000;

-- A huge one: the next is higher, and so are those of the other leases from
-- then on, since the sequence goes along.
INSERT INTO dist_lock (name, token) VALUES ('huge', 4000000000000000000);
SELECT lease_try('huge', 'x', '1 h'), lease_try('after huge', 'x', '1 h');
SELECT name FROM dist_lock WHERE token > 4000000000000000000 AND name LIKE '%huge';
SELECT lease_token('after huge', 'x') > lease_token('huge', 'x') AS higher;
-- It is never set back.
INSERT INTO dist_lock (name, token) VALUES ('small', 5);
SELECT lease_try('small', 'x', '1 h'), lease_token('small', 'x') > lease_token('after huge', 'x') AS higher;
-- A rolled back grant of such a lease does not make two of the same.
INSERT INTO dist_lock (name, token) VALUES ('huge 2', 5000000000000000000);
BEGIN;
SELECT lease_try('huge 2', 'x', '1 h');
SELECT lease_token('huge 2', 'x') AS rolled_back \gset
ROLLBACK;
SELECT lease_try('huge 2', 'x', '1 h'), lease_token('huge 2', 'x') > :rolled_back AS higher;

-- Counters at the border of their type stay there.
INSERT INTO dist_lock (name, owner, expiry, token, grants, takeovers) VALUES ('counters', 'x', now(), 7, 9223372036854775807, 9223372036854775807);
SELECT lease_try('counters', 'y', '1 h');
SELECT grants, takeovers FROM dist_lock WHERE name = 'counters';

-- Odd values in the columns that only tell.
INSERT INTO dist_lock (name, owner, expiry, token, acquired_at, renewed_at, ttl, session_pid, session_start, grants, min_margin, last_owner, last_end) VALUES
    ('odd', 'x', now() + interval '1 h', 7, '-infinity', 'infinity', '1 mon 1 day 1 s', -1, 'infinity', -5, '-1 year', '', 'nonsense'),
    ('odd 2', 'x', now(), 7, '-infinity', 'infinity', '1 mon 1 day 1 s', 0, '-infinity', -5, '-1 year', repeat('long', 1000), 'nonsense');
SELECT lease_try('odd', 'y', '1 h'), lease_renew('odd', 'x', '1 h'), lease_token('odd', 'x');
SELECT owner, acquired_at, ttl, grants, last_owner = '' AS last_owner FROM dist_lock WHERE name = 'odd';
SELECT lease_try('odd 2', 'y', '1 h'), lease_release('odd 2', 'y');
SELECT owner, ttl, grants, last_owner, last_end FROM dist_lock WHERE name = 'odd 2';

-- Deleted or changed under the holder.
SELECT lease_try('gone', 'x', '1 h');
DELETE FROM dist_lock WHERE name = 'gone';
SELECT lease_token('gone', 'x'), lease_renew('gone', 'x', '1 h');
SELECT lease_release('gone', 'x');
SELECT lease_try('gone', 'y', '1 h');
UPDATE dist_lock SET owner = 'x' WHERE name = 'gone';
SELECT lease_token('gone', 'y'), lease_token('gone', 'x') IS NOT NULL AS token, lease_renew('gone', 'y', '1 h'), lease_renew('gone', 'x', '1 h');
UPDATE dist_lock SET name = 'moved' WHERE name = 'gone';
SELECT lease_token('gone', 'x'), lease_renew('gone', 'x', '1 h'), lease_renew('moved', 'x', '1 h'), lease_try('gone', 'y', '1 h');

\set VERBOSITY default
DROP FUNCTION outcome(text);
DROP EXTENSION lease;
