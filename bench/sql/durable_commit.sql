SELECT pg_logical_emit_message(true, 'bench', 'x');
SELECT 1;
