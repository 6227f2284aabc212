\set job random(1, :rows)
UPDATE shedlock SET lock_until = clock_timestamp() + '30 s', locked_at = clock_timestamp(), locked_by = 'bench' WHERE name = 'job ' || :job AND lock_until <= clock_timestamp();
