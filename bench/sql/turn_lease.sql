CALL lease_acquire('turn', 'bench ' || :client_id, '1 min');
SELECT lease_release('turn', 'bench ' || :client_id);
