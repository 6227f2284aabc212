\set job random(1, :rows)
SELECT lease_try('job ' || :job, 'bench', '30 s');
