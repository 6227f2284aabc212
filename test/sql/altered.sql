-- dist_lock is not as the extension made it: calls fail with 55000 and say what it is.
\set VERBOSITY default
CREATE EXTENSION lease;
SELECT lease_try('job', 'a', '1 h');

-- Another access method, if only by name.
CREATE ACCESS METHOD regress_lease_heap TYPE TABLE HANDLER heap_tableam_handler;
ALTER TABLE dist_lock SET ACCESS METHOD regress_lease_heap;
SELECT lease_try('job', 'a', '1 h');
SELECT lease_token('job', 'a');
ALTER TABLE dist_lock SET ACCESS METHOD heap;
DROP ACCESS METHOD regress_lease_heap;
SELECT lease_token('job', 'a') IS NOT NULL AS held;

-- A call of a function that is dropped by the same statement.
CREATE FUNCTION drop_lease() RETURNS void LANGUAGE sql AS 'DROP EXTENSION lease';
SELECT drop_lease(), lease_token('job', 'a');
SELECT drop_lease(), lease_try('job', 'a', '1 h');
SELECT lease_token('job', 'a') IS NOT NULL AS held;

-- A call in the statement that has just changed the row.
UPDATE dist_lock SET ttl = ttl WHERE name = 'job' RETURNING lease_renew(name, owner, '2 h');
UPDATE dist_lock SET ttl = ttl WHERE name = 'job' RETURNING lease_release(name, owner);
SELECT lease_renew('job', 'a', '1 h');

DROP FUNCTION drop_lease();
DROP EXTENSION lease;
