\set n :n % :size + 1
SELECT lease_renew('renewed ' || :n, 'holder', '1 day');
