UPDATE heartbeat SET beat = clock_timestamp() WHERE name IN (SELECT unnest(names) FROM arrays WHERE size = :size) AND owner = 'holder';
