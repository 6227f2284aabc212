UPDATE shedlock SET lock_until = clock_timestamp() + '30 s', locked_at = clock_timestamp(), locked_by = 'bench' WHERE name = 'job ' || :client_id AND lock_until <= clock_timestamp();
UPDATE shedlock SET lock_until = clock_timestamp() WHERE name = 'job ' || :client_id AND locked_by = 'bench';
