-- Names and owners come back byte for byte as they went in, and distinct ones
-- are distinct.
CREATE EXTENSION lease;
SET client_min_messages = error;
CREATE TABLE names (n serial, name text COLLATE "C", why text);
INSERT INTO names (name, why) VALUES
    (' ', 'blank'), ('  ', 'two blanks'), ('a', 'letter'), ('a ', 'trailing blank'), (' a', 'leading blank'),
    ('A', 'upper case'), (E'a\n', 'line feed'), (E'a\t', 'tab'), (E'\r', 'carriage return'), (E'\x01', 'control'),
    ('''', 'quote'), ('''''', 'two quotes'), ('"', 'double quote'), ('\', 'backslash'), ('\\', 'two backslashes'), ('$$', 'dollars'),
    ('x''); DROP TABLE dist_lock;--', 'injection'), ('x''; DROP TABLE dist_lock;--', 'injection'),
    ('$1', 'parameter'), ('%s%n', 'format'), ('NULL', 'null'), ('{a,b}', 'array'), ('a%', 'wildcard'), ('_', 'wildcard'),
    (E'caf\xc3\xa9', 'composed'), (E'cafe\xcc\x81', 'decomposed'), (E'CAF\xc3\x89', 'composed, upper case'),
    (E'\xc3\x9f', 'sharp s'), ('ss', 'ss'), (E'\xc4\xb1', 'dotless i'), ('i', 'i'), (E'\xe2\x80\x8b', 'zero width'),
    (E'\xf0\x9f\x90\x98', 'beyond the basic plane'),
    ('0', 'zero'), ('00', 'two zeros'), ('-', 'minus'), ('--', 'comment'), ('/*', 'comment'),
    (repeat('x', 254), '254 bytes'), (repeat('x', 255), '255 bytes'), (repeat('x', 254) || 'y', '255 other bytes'),
    (repeat(E'\xc3\xa9', 127) || 'x', '255 bytes in 128 characters'),
    ('job', 'job'), ('btkVlgA&z0iF', 'the hash of job');
SELECT count(*) = count(DISTINCT name) AS distinct FROM names;
SELECT hashtextextended('btkVlgA&z0iF', 0) = hashtextextended('job', 0) AS same_hash;

-- As a name.
SELECT count(*) FILTER (WHERE lease_try(name, 'me', '1 h')) = count(*) AS all_taken FROM names;
SELECT why FROM names n WHERE NOT EXISTS (SELECT FROM dist_lock d WHERE d.name = n.name);
SELECT (SELECT count(*) FROM dist_lock) = count(*) AS all_there FROM names;
SELECT count(DISTINCT lease_token(name, 'me')) = count(*) AS tokens_differ FROM names;
SELECT count(*) FILTER (WHERE lease_try(name, 'you', '1 h')) AS taken_twice FROM names;
SELECT count(*) FILTER (WHERE lease_renew(name, 'me', '1 h')) = count(*) AS all_renewed FROM names;
SELECT lease_renew_all(array_agg(name ORDER BY n), 'me', '1 h') = array_agg(name ORDER BY n) AS all_renewed FROM names;
SELECT count(*) FILTER (WHERE lease_try_any(ARRAY[name], 'me', '1 h') = name) = count(*) AS all_extended FROM names;
SELECT count(*) FILTER (WHERE lease_release(name, 'me')) = count(*) AS all_released FROM names;

-- As an owner: nobody else's is taken for it.
SELECT lease_try('owned', 'nobody', '1 h'), lease_release('owned', 'nobody');
CREATE FUNCTION check_owner(mine text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    other text;
BEGIN
    IF NOT lease_try('owned', mine, '1 h') THEN
        RETURN 'not granted';
    END IF;
    IF (SELECT owner <> mine FROM dist_lock WHERE name = 'owned') THEN
        RETURN 'changed';
    END IF;
    FOR other IN SELECT name FROM names WHERE name <> mine LOOP
        IF lease_try('owned', other, '1 h') OR lease_renew('owned', other, '1 h')
           OR lease_token('owned', other) IS NOT NULL OR lease_release('owned', other) THEN
            RETURN 'taken for another';
        END IF;
    END LOOP;
    IF NOT (lease_renew('owned', mine, '1 h') AND lease_try('owned', mine, '1 h')
            AND lease_token('owned', mine) IS NOT NULL AND lease_release('owned', mine)) THEN
        RETURN 'not known again';
    END IF;
    IF (SELECT last_owner <> mine FROM dist_lock WHERE name = 'owned') THEN
        RETURN 'changed at its end';
    END IF;
    RETURN 'right';
END $$;
SELECT check_owner(name), count(*) = (SELECT count(*) FROM names) AS all FROM names GROUP BY 1;

-- Values that are stored compressed, out of line, or with a short header.
CREATE TABLE stored (n serial, name text, owner text, pad text);
ALTER TABLE stored ALTER name SET STORAGE EXTENDED, ALTER owner SET STORAGE EXTERNAL, ALTER pad SET STORAGE PLAIN;
ALTER TABLE stored SET (toast_tuple_target = 128);
INSERT INTO stored (name, owner, pad) VALUES
    (repeat('n', 255), repeat('o', 255), repeat('p', 2100)), (repeat('m', 200), repeat('p', 200), repeat('p', 2100)),
    ('short', 'header', NULL), (repeat('n', 256), 'too long', repeat('p', 2100)), ('too long', repeat('o', 256), repeat('p', 2100)),
    (repeat('n', 1000000), 'far too long', NULL), ('far too long', repeat('o', 1000000), NULL);
SELECT n, pg_column_compression(name) IS NOT NULL AS compressed, octet_length(name) > pg_column_size(name) AS smaller FROM stored ORDER BY n;
SELECT pg_relation_size(reltoastrelid) > 0 AS out_of_line FROM pg_class WHERE oid = 'stored'::regclass;
CREATE FUNCTION outcome(stored) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF NOT lease_try($1.name, $1.owner, '1 h') THEN
        RETURN 'not granted';
    END IF;
    RETURN lease_renew($1.name, $1.owner, '1 h')
       AND lease_renew_all(ARRAY[$1.name], $1.owner, '1 h') = ARRAY[$1.name]
       AND lease_try_any(ARRAY[$1.name], $1.owner, '1 h') = $1.name
       AND lease_token($1.name, $1.owner) IS NOT NULL
       AND (SELECT count(*) = 1 FROM dist_lock WHERE name = $1.name AND owner = $1.owner)
       AND lease_release($1.name, $1.owner);
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SELECT n, outcome(s) FROM stored s ORDER BY n;
SELECT lease_try(name, owner, '1 h') FROM stored WHERE n = 1;
SELECT lease_renew(name, owner, '1 h'), lease_token(name, owner) IS NOT NULL AS token, lease_release(name, owner) FROM stored WHERE n = 1;

-- An array that is stored compressed, and one out of line.
CREATE TABLE stored_names (names text[]);
INSERT INTO stored_names SELECT array_agg(repeat('n', 200) || i) FROM generate_series(1, 100) i;
ALTER TABLE stored_names ALTER names SET STORAGE EXTERNAL;
INSERT INTO stored_names SELECT array_agg(md5(i::text)) FROM generate_series(1, 100) i;
SELECT count(*) FROM stored_names, unnest(names) n WHERE lease_try(n, 'me', '1 h');
SELECT lease_renew_all(names, 'me', '1 h') = names AS renewed, lease_try_any(names, 'me', '1 h') = ANY (names) AS slot FROM stored_names;

-- Other string types.
SELECT lease_try('varchar'::varchar, 'me'::name, '1 h'), lease_token('varchar'::char(10), 'me') IS NOT NULL AS token;

DROP TABLE names, stored, stored_names CASCADE;
DROP FUNCTION check_owner(text);
DROP EXTENSION lease;
