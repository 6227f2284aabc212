\set ECHO none
-- What a statement comes to: its answer, or its SQLSTATE. For \i, below pg_regress, which
-- gives the directory: \ir knows none, since psql reads a test from its standard input.
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE statement INTO answer;
    RETURN coalesce(answer, 'NULL');
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
\set ECHO all
