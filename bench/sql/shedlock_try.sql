UPDATE shedlock SET lock_until = clock_timestamp() + '30 s', locked_at = clock_timestamp(), locked_by = 'bench' WHERE name = 'held' AND lock_until <= clock_timestamp();
