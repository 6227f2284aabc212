INSERT INTO heartbeat (name, owner, beat) VALUES ('job ' || :client_id, 'bench', clock_timestamp()) ON CONFLICT (name) DO UPDATE SET owner = 'bench', beat = clock_timestamp() WHERE heartbeat.beat < clock_timestamp() - interval '30 s';
UPDATE heartbeat SET beat = '-infinity' WHERE name = 'job ' || :client_id AND owner = 'bench';
