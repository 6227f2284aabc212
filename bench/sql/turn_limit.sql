SELECT pg_advisory_lock(2);
SELECT pg_logical_emit_message(true, 'bench', 'x');
SELECT pg_advisory_unlock(2);
