-- What every function says to arguments that it does not take.
CREATE EXTENSION lease;
SELECT lease_try('held', 'a', '1 h');

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/outcome_in_words.sql'
\i :include

\pset format unaligned
\pset tuples_only on

-- NULL.
SELECT call, outcome('SELECT ' || call) FROM (VALUES
    ('lease_try(NULL, ''a'', ''1 s'')'),
    ('lease_try(''n'', NULL, ''1 s'')'),
    ('lease_try(''n'', ''a'', NULL)'),
    ('lease_try(NULL, NULL, NULL)'),
    ('lease_renew(NULL, ''a'', ''1 s'')'),
    ('lease_renew(''n'', NULL, ''1 s'')'),
    ('lease_renew(''n'', ''a'', NULL)'),
    ('lease_renew(''n'', ''a'', ''1 s'', NULL)'),
    ('lease_renew_all(NULL, ''a'', ''1 s'')'),
    ('lease_renew_all(ARRAY[''n''], NULL, ''1 s'')'),
    ('lease_renew_all(ARRAY[''n''], ''a'', NULL)'),
    ('lease_renew_all(ARRAY[''n'', NULL], ''a'', ''1 s'')'),
    ('lease_renew_all(''{}'', NULL, ''1 s'')'),
    ('lease_release(NULL, ''a'')'),
    ('lease_release(''held'', NULL)'),
    ('lease_release(NULL, ''a'', ''1 s'', 1)'),
    ('lease_token(NULL, ''a'')'),
    ('lease_token(''n'', NULL)'),
    ('lease_try_any(NULL, ''a'', ''1 s'')'),
    ('lease_try_any(ARRAY[''n''], NULL, ''1 s'')'),
    ('lease_try_any(ARRAY[''n''], ''a'', NULL)'),
    ('lease_try_any(ARRAY[NULL, ''n''], ''a'', ''1 s'')'),
    ('lease_try_any(ARRAY[''n'', NULL], ''a'', ''1 s'')'),
    ('lease_try_any(ARRAY[NULL]::text[], ''a'', ''1 s'')')) v (call);

-- Names and owners: empty, at their limit, beyond it. What would be answered
-- with false is refused, too.
SELECT call, outcome('SELECT ' || call) FROM (VALUES
    ('lease_try('''', ''a'', ''1 s'')'),
    ('lease_try(''n'', '''', ''1 s'')'),
    ('lease_try(''held'', '''', ''1 s'')'),
    ('lease_renew('''', ''a'', ''1 s'')'),
    ('lease_renew(''held'', '''', ''1 s'')'),
    ('lease_renew_all(ARRAY[''''], ''a'', ''1 s'')'),
    ('lease_renew_all(ARRAY[''n''], '''', ''1 s'')'),
    ('lease_release('''', ''a'')'),
    ('lease_release(''held'', '''')'),
    ('lease_token('''', ''a'')'),
    ('lease_token(''held'', '''')'),
    ('lease_try_any(ARRAY[''''], ''a'', ''1 s'')'),
    ('lease_try_any(ARRAY[''n'', ''''], ''a'', ''1 s'')'),
    ('lease_try_any(ARRAY[''n''], '''', ''1 s'')'),
    ('lease_try(repeat(''n'', 255), repeat(''o'', 255), ''1 s'')'),
    ('lease_renew(repeat(''n'', 255), repeat(''o'', 255), ''1 s'')'),
    ('lease_token(repeat(''n'', 255), repeat(''o'', 255)) IS NOT NULL'),
    ('lease_renew_all(ARRAY[repeat(''n'', 255)], repeat(''o'', 255), ''1 s'') = ARRAY[repeat(''n'', 255)]'),
    ('lease_try_any(ARRAY[repeat(''n'', 255)], repeat(''o'', 255), ''1 s'') = repeat(''n'', 255)'),
    ('lease_release(repeat(''n'', 255), repeat(''o'', 255))'),
    ('lease_try(repeat(''n'', 256), ''a'', ''1 s'')'),
    ('lease_try(''n'', repeat(''o'', 256), ''1 s'')'),
    ('lease_try(repeat(E''\xc3\xa9'', 128), ''a'', ''1 s'')'),
    ('lease_try(repeat(''n'', 1000000), ''a'', ''1 s'')'),
    ('lease_try(''n'', repeat(''o'', 1000000), ''1 s'')'),
    ('lease_renew(repeat(''n'', 256), ''a'', ''1 s'')'),
    ('lease_renew(''n'', repeat(''o'', 256), ''1 s'')'),
    ('lease_renew_all(ARRAY[''n'', repeat(''n'', 256)], ''a'', ''1 s'')'),
    ('lease_renew_all(ARRAY[''n''], repeat(''o'', 256), ''1 s'')'),
    ('lease_release(repeat(''n'', 256), ''a'')'),
    ('lease_release(''n'', repeat(''o'', 256))'),
    ('lease_token(repeat(''n'', 1000000), ''a'')'),
    ('lease_token(''n'', repeat(''o'', 256))'),
    ('lease_try_any(ARRAY[''n'', repeat(''n'', 256)], ''a'', ''1 s'')'),
    ('lease_try_any(ARRAY[''n''], repeat(''o'', 256), ''1 s'')')) v (call);

-- Times to live. Nothing was taken so far: 'n' is free.
SELECT lease_token('n', 'a') IS NULL AS nothing_taken;
SELECT ttl, outcome(format('SELECT lease_try(''ttl'', ''a'', %L)', ttl)) FROM (VALUES
    ('0'), ('-1 s'), ('-1 us'), ('-1 day'), ('1 day -24 hours'), ('1 day -25 hours'),
    ('1 month'), ('1 mon -29 days'), ('-1 month'), ('1 year'), ('1 year -12 months 1 s'),
    ('300000 years'), ('-300000 years'), ('2000000000 days'), ('-2000000000 days'),
    ('107000000 days'), ('106000000 days'), ('2562047788 hours'), ('106000000 days 2562047788 hours'),
    ('nonsense')) v (ttl);
SELECT count(*) AS rows_made FROM dist_lock WHERE name = 'ttl';
SELECT ttl, outcome(format('SELECT lease_try(%L, ''a'', %L)', 'ttl ' || ttl, ttl)) FROM (VALUES
    ('1 us'), ('0.4 s'), ('1 day'), ('1 day -23:59:59.9'), ('-1 day +25:00'), ('36500 days'), ('2 years -24 mon +1 s')) v (ttl);
SELECT name, expiry - acquired_at FROM dist_lock WHERE name LIKE 'ttl %' ORDER BY acquired_at;
SELECT call, outcome('SELECT ' || call) FROM (VALUES
    ('lease_try(''held'', ''b'', ''0'')'),
    ('lease_try(''held'', ''a'', ''-1 s'')'),
    ('lease_try(''held'', ''b'', ''1 month'')'),
    ('lease_try(''held'', ''a'', ''2000000000 days'')'),
    ('lease_renew(''held'', ''a'', ''0'')'),
    ('lease_renew(''held'', ''a'', ''-1 s'')'),
    ('lease_renew(''held'', ''b'', ''1 month'')'),
    ('lease_renew(''unknown'', ''b'', ''0'')'),
    ('lease_renew(''held'', ''a'', ''2000000000 days'')'),
    ('lease_renew(''held'', ''a'', ''2562047788 hours'')'),
    ('lease_renew_all(ARRAY[''held''], ''a'', ''0'')'),
    ('lease_renew_all(''{}'', ''a'', ''-1 s'')'),
    ('lease_renew_all(ARRAY[''held''], ''a'', ''1 month'')'),
    ('lease_renew_all(ARRAY[''held''], ''a'', ''2000000000 days'')'),
    ('lease_try_any(ARRAY[''held''], ''a'', ''0'')'),
    ('lease_try_any(''{}'', ''a'', ''-1 s'')'),
    ('lease_try_any(ARRAY[''held''], ''b'', ''1 month'')'),
    ('lease_try_any(ARRAY[''held''], ''a'', ''2000000000 days'')'),
    -- Nought is a time to keep; less is not.
    ('lease_release(''held'', ''a'', ''-1 s'')'),
    ('lease_release(''held'', ''a'', ''-1 us'')'),
    ('lease_release(''held'', ''a'', ''1 month'')'),
    ('lease_release(''held'', ''b'', ''1 mon -29 days'')'),
    ('lease_release(''unknown'', ''b'', ''-1 s'')'),
    ('lease_release(''held'', ''a'', ''2000000000 days'')'),
    ('lease_release(''held'', ''a'', ''2562047788 hours'')')) v (call);
SELECT lease_renew('held', 'a', '1 h') AS still_held;
SELECT lease_release('held', 'a', '0'), lease_try('held', 'a', '1 h');

-- Infinite intervals came with PostgreSQL 17.
DO $$
DECLARE
    call text;
    state text;
BEGIN
    IF current_setting('server_version_num')::int < 170000 THEN
        RETURN;
    END IF;
    FOREACH call IN ARRAY ARRAY[
        'lease_try(''inf'', ''a'', ''infinity'')', 'lease_try(''inf'', ''a'', ''-infinity'')',
        'lease_renew(''held'', ''a'', ''infinity'')', 'lease_renew(''held'', ''b'', ''-infinity'')',
        'lease_renew_all(ARRAY[''held''], ''a'', ''infinity'')',
        'lease_release(''held'', ''a'', ''infinity'')', 'lease_release(''held'', ''a'', ''-infinity'')',
        'lease_try_any(ARRAY[''inf''], ''a'', ''infinity'')'] LOOP
        state := left(outcome('SELECT ' || call), 5);
        IF state <> '22023' THEN
            RAISE WARNING '% gave %', call, state;
        END IF;
    END LOOP;
END $$;

-- A longest time to live, set by the administrator.
SHOW lease.max_ttl;
SET lease.max_ttl = '1min';
SELECT call, outcome('SELECT ' || call) FROM (VALUES
    ('lease_try(''max'', ''a'', ''1 min'')'),
    ('lease_try(''max'', ''a'', ''1 min 1 us'')'),
    ('lease_try(''max'', ''b'', ''2 min'')'),
    ('lease_renew(''max'', ''a'', ''1 min'')'),
    ('lease_renew(''max'', ''a'', ''1 h'')'),
    ('lease_renew_all(ARRAY[''max''], ''a'', ''1 min'')'),
    ('lease_renew_all(ARRAY[''max''], ''a'', ''1 h'')'),
    ('lease_try_any(ARRAY[''max''], ''a'', ''1 min'')'),
    ('lease_try_any(ARRAY[''max''], ''a'', ''1 h'')'),
    ('lease_release(''max'', ''a'', ''1 h'')'),
    ('lease_release(''max'', ''a'', ''1 min'')')) v (call);
RESET lease.max_ttl;
SELECT lease_try('max2', 'a', '1 h');
CREATE ROLE regress_lease_plain;
SET ROLE regress_lease_plain;
SELECT outcome('SET lease.max_ttl = ''1min''');
RESET ROLE;
DROP ROLE regress_lease_plain;

-- Arrays of any shape are lists.
SELECT lease_try('s1', 'a', '1 h'), lease_try('s2', 'a', '1 h');
SELECT lease_renew_all('{}', 'a', '1 h') = '{}' AS empty, lease_try_any('{}', 'a', '1 h') IS NULL AS empty;
SELECT outcome('SELECT lease_renew_all(''[5:6]={s2,s1}'', ''a'', ''1 h'')') AS bounds;
SELECT outcome('SELECT lease_renew_all(''{{s1,s2},{s2,s3}}'', ''a'', ''1 h'')') AS dimensions;

-- Wrong types and numbers of arguments are the parser's to refuse.
SELECT left(outcome('SELECT lease_try(''n'', ''a'', 30)'), 5), left(outcome('SELECT lease_try(''n'', ''a'')'), 5);

\pset format aligned
\pset tuples_only off
DROP FUNCTION outcome(text);
DROP EXTENSION lease;
