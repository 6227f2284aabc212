SELECT lease_try('held', 'bench', '30 s');
