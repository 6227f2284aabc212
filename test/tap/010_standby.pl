# A standby tells the token and refuses what would write; a synchronous
# standby is waited for by a grant, whatever the session says.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = Lease::Node::make('primary', streaming => 1, max_connections => 30);
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

my $token = $primary->safe_psql('postgres', q{SELECT lease_token('k', 'a') WHERE lease_try('k', 'a', '1 hour')});
$primary->safe_psql('postgres', q{SELECT lease_try('short', 'a', '1 ms'),
	lease_try('gone', 'a', '1 hour'), lease_release('gone', 'a')});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

is($standby->safe_psql('postgres', q{SELECT lease_token('k', 'a')}),
	$token, 'standby: lease_token gives the token');
is( $standby->safe_psql('postgres', q{SELECT lease_token('k', 'b') IS NULL, lease_token('short', 'a') IS NULL,
		lease_token('gone', 'a') IS NULL, lease_token('none', 'a') IS NULL}),
	't|t|t|t', 'standby: and NULL for who does not hold it');
for my $call (
	q{lease_try('free', 'a', '1 min')},
	q{lease_try('k', 'a', '1 min')},
	q{lease_try('k', 'b', '1 min')},
	q{lease_renew('k', 'a', '1 min')},
	q{lease_renew('k', 'b', '1 min')},
	q{lease_renew_all('{k}', 'a', '1 min')},
	q{lease_renew_all('{k}', 'b', '1 min')},
	q{lease_renew_all('{}', 'b', '1 min')},
	q{lease_release('k', 'a')},
	q{lease_release('k', 'b')},
	q{lease_try_any('{k}', 'a', '1 min')},
	q{lease_try_any('{k}', 'b', '1 min')})
{
	is_deeply([ Lease::Node::answer($standby, "SELECT $call") ], [ '', '25006' ], "standby: $call is refused");
	is_deeply([ Lease::Node::answer($primary, "BEGIN READ ONLY; SELECT $call; COMMIT") ],
		[ '', '25006' ], "read-only transaction: $call is refused");
}
is($primary->safe_psql('postgres', q{BEGIN READ ONLY; SELECT lease_token('k', 'a'); COMMIT}),
	$token, 'read-only transaction: lease_token works');
# Renewals and takeovers are seen as they are replayed.
$primary->safe_psql('postgres', q{SELECT lease_release('k', 'a')});
my $next = $primary->safe_psql('postgres', q{SELECT lease_token('k', 'b') WHERE lease_try('k', 'b', '1 hour')});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is( $standby->safe_psql('postgres', q{SELECT lease_token('k', 'a') IS NULL, lease_token('k', 'b')}),
	"t|$next", 'standby: the next tenure');

# A standby that must confirm and never does
$primary->safe_psql('postgres', q{
	ALTER SYSTEM SET synchronous_standby_names = 'nobody'; SELECT pg_reload_conf()});
$primary->poll_query_until('postgres', q{SELECT current_setting('synchronous_standby_names') = 'nobody'})
  or die 'not reloaded';

# Does the commit of this wait for the standby? The wait is then cancelled.
sub waits_for_standby
{
	my ($setting, $statement) = @_;
	my $session = $primary->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe("SET synchronous_commit = $setting; SELECT pg_backend_pid()");

	$session->query_until(qr/begun/, "\\echo begun\nBEGIN;\n$statement;\nCOMMIT;\n");
	$primary->poll_query_until('postgres',
		"SELECT wait_event = 'SyncRep' OR state = 'idle' AND query = 'COMMIT;' FROM pg_stat_activity WHERE pid = $pid")
	  or die 'neither waiting nor done';
	my $waits = $primary->safe_psql('postgres',
		"SELECT wait_event = 'SyncRep', pg_cancel_backend(pid) IS NULL FROM pg_stat_activity WHERE pid = $pid");
	$session->query_until(qr/over/, "\\echo over\n");
	$session->quit;
	return substr $waits, 0, 1;
}

# Commits wait from when the checkpointer has told everybody.
my $told = 0;
$told++ until $told == 1000 || waits_for_standby('on', "CREATE TABLE told$told ()") eq 't';
cmp_ok($told, '<', 1000, 'who says on waits for the standby');
my $try = q{SELECT 1/lease_try('s', 'a', '1 hour')::int};
is(waits_for_standby('local', 'CREATE TABLE t()'), 'f', 'a session that says local does not wait for the standby');
is(waits_for_standby('local', $try), 't', 'but its grant does');
is(waits_for_standby('off', $try), 't', 'so does an extension where it says off');
is(waits_for_standby('off', q{SELECT 1/lease_renew('s', 'a', '1 hour')::int}), 't', 'and a renewal');
is(waits_for_standby('on', q{SELECT 1/(NOT lease_try('s', 'b', '1 hour'))::int}), 'f', 'a losing try has nothing to wait for');
is(waits_for_standby('on', q{SELECT 1/lease_release('s', 'a')::int}), 'f', 'a release alone does not wait');
is(waits_for_standby('on', $try), 't', 'granted again');
is(waits_for_standby('on', q{SELECT 1/lease_release('s', 'a')::int; CREATE TABLE u()}), 't',
	'a release and a write do');
$primary->safe_psql('postgres', q{ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf()});

# The standby takes over.
my $highest = $primary->safe_psql('postgres', 'SELECT max(token) FROM dist_lock');
my $renewed = $primary->safe_psql('postgres', q{SELECT lease_token('k', 'b') WHERE lease_renew('k', 'b', '1 hour')});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$primary->stop('immediate');
$standby->promote;
is($standby->safe_psql('postgres', q{SELECT lease_token('k', 'b'), lease_try('k', 'a', '1 min'), lease_renew('k', 'b', '1 hour')}),
	"$renewed|f|t", 'promoted: the live lease is live');
cmp_ok($standby->safe_psql('postgres', q{SELECT lease_token('new', 'a') WHERE lease_try('new', 'a', '1 min')}),
	'>', $highest, 'promoted: the next token is higher');

Lease::Node::unhurt($_) for $primary, $standby;
$standby->stop;
done_testing();
