# lease_purge beside tries and releases of the same leases: no two holders, no
# error, no token that comes back.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Session;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = Lease::Node::make('purge');
$node->safe_psql('postgres', q{
	CREATE TABLE held (name text PRIMARY KEY);
	CREATE TABLE tokens (name text, token bigint, PRIMARY KEY (name, token));
	CREATE FUNCTION work(lease text, who text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		t bigint;
	BEGIN
		IF lease_try(lease, who, '1 min') THEN
			t := lease_token(lease, who);
			INSERT INTO tokens VALUES (lease, t);
			PERFORM 1 / (NOT EXISTS (SELECT FROM tokens WHERE name = lease AND token > t))::int;
		END IF;
	END $$});

# In the transaction after the grant, so that others see it. Who finds the name in
# `held`, or a higher token, ends his client.
my $bench = Lease::Node::pgbench_start($node, '-c 4 -j 1 -M prepared', q{
\set n random(1, 5)
SELECT work('n' || :n, 'c' || :client_id);
SELECT lease_token('n' || :n, 'c' || :client_id) IS NOT NULL AS got \gset
\if :got
INSERT INTO held VALUES ('n' || :n);
DELETE FROM held WHERE name = 'n' || :n;
SELECT 1 / lease_release('n' || :n, 'c' || :client_id)::int;
\endif
});
my $purger = Lease::Session->connect($node);
my ($purged, $rounds, $until) = (0, 0, time + 120);
while (($purged < 200 || $rounds < ($ENV{LONG} ? 8000 : 400)) && time < $until)
{
	# Stopped in the middle, so that leases change between one step of it and the next.
	$purger->send(q{SELECT lease_purge('0')});
	sleep rand 0.0003;
	kill STOP => $purger->{pid};
	sleep 0.003;
	kill CONT => $purger->{pid};
	$purged += $purger->got;
	$rounds++;
}
cmp_ok($purged, '>=', 200, "rows went while others used them ($purged in $rounds calls)");
Lease::Node::pgbench_stop($bench, 'and nobody met another holder, a lower token or an error');
cmp_ok($node->safe_psql('postgres', 'SELECT max(c) FROM (SELECT count(*) AS c FROM tokens GROUP BY name) t'), '>', 10, 'tokens of one lease rose all the while');

# One whom somebody queues for.
$node->safe_psql('postgres', q{SELECT lease_purge('0'); SELECT lease_try('queued', 'a', '1 h')});
my $token = $node->safe_psql('postgres', q{SELECT lease_token('queued', 'a')});
my $waiter = Lease::Session->connect($node);
$waiter->send(q{CALL lease_acquire('queued', 'b', '1 h', '30 s')});
Lease::Session::asleep($waiter) or die 'does not wait';
$purger->must(q{SELECT lease_purge('0')});
is($purger->must(q{SELECT count(*) FROM dist_lock WHERE name = 'queued'}), 1, 'a live lease that is queued for stays');
$purger->must(q{BEGIN; UPDATE dist_lock SET expiry = clock_timestamp() WHERE name = 'queued'});
$purger->must(q{SELECT lease_purge('0')});
is($purger->must(q{SELECT count(*) FROM dist_lock WHERE name = 'queued'}), 0, 'it expires and goes');
$purger->must('COMMIT');
cmp_ok($waiter->got, '>', $token, 'who waits gets it, with a higher token');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
