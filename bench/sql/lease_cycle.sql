SELECT lease_try('job ' || :client_id, 'bench', '30 s');
SELECT lease_release('job ' || :client_id, 'bench');
