-- A day is 24 hours, whatever the time zone and its changes of clocks.
CREATE EXTENSION lease;
SET timezone = 'America/New_York';

-- In any 360 days the clocks there change twice, so that calendar days are
-- longer or shorter than 24 hours to some of these expiries.
SELECT count(*) FROM generate_series(1, 360) d WHERE lease_try('d' || d, 'a', make_interval(days => d));
SELECT count(*) FILTER (WHERE extract(epoch FROM expiry - acquired_at) = 86400 * substr(name, 2)::int) AS of_24_hours,
       count(*) FILTER (WHERE expiry <> acquired_at + make_interval(days => substr(name, 2)::int)) > 0 AS unlike_calendar_days
  FROM dist_lock;

-- Renewals, too.
SELECT count(*) FROM generate_series(1, 360) d WHERE lease_renew('d' || d, 'a', make_interval(days => d, mins => 1));
SELECT cardinality(lease_renew_all(array_agg('d' || d), 'a', '200 days')) FROM generate_series(1, 180) d;
SELECT count(*) FILTER (WHERE extract(epoch FROM expiry - renewed_at) = CASE WHEN substr(name, 2)::int <= 180 THEN 86400 * 200 ELSE 86400 * substr(name, 2)::int + 60 END) AS of_24_hours
  FROM dist_lock;

-- And times to keep.
SELECT count(*) FROM generate_series(1, 360) d WHERE lease_release('d' || d, 'a', make_interval(days => d));
SELECT count(*) FILTER (WHERE extract(epoch FROM expiry - acquired_at) = 86400 * substr(name, 2)::int) AS of_24_hours FROM dist_lock;

-- The zone changes nothing about who holds what.
SELECT lease_try('zone', 'a', '1 day');
SET timezone = 'Pacific/Kiritimati';
SELECT lease_try('zone', 'b', '1 day'), lease_renew('zone', 'a', '24:00'), lease_try('zone', 'a', '1 day');
SET timezone = 'Etc/GMT+12';
SELECT lease_try('zone', 'b', '1 day'), lease_token('zone', 'a') IS NOT NULL AS token;
SELECT expiry = renewed_at + interval '24:00' AS expiry FROM dist_lock WHERE name = 'zone';
RESET timezone;

DROP EXTENSION lease;
