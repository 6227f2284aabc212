SELECT array_length(lease_renew_all(names, 'holder', '1 day'), 1) FROM names;
