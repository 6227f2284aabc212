SELECT lease_renew_all(names, 'holder', '1 day') FROM arrays WHERE size = :size;
