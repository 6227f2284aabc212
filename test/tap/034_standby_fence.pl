# On a standby the views work, and fence, break and purge are refused; in a
# read-only transaction of the primary the fence passes. What a standby shows
# follows the primary, and after its promotion fences and tokens go on.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = Lease::Node::make('primary', streaming => 1);
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

sub caught_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

my $token = $primary->safe_psql('postgres', q{SELECT lease_token('k', 'a') WHERE lease_try('k', 'a', '1 h')});
$primary->safe_psql('postgres', q{SELECT lease_try('gone', 'a', '1 h'), lease_release('gone', 'a'), lease_try('over', 'a', '1 us'), lease_try('cool', 'a', '1 h'), lease_release('cool', 'a', '1 h')});
caught_up();
my $states = q{SELECT string_agg(name || '=' || state || '/' || coalesce(owner, '-'), ' ' ORDER BY name) FROM leases};
is($standby->safe_psql('postgres', $states), 'cool=cooling/- gone=free/- k=held/a over=expired/a', 'the view of leases, on a standby');
is($standby->safe_psql('postgres', $states), $primary->safe_psql('postgres', $states), 'is as on the primary');

# Waiters are those of the server that is asked; a transaction that is open on the primary shows, too.
my $open = $primary->background_psql('postgres', on_error_stop => 1);
$open->query_safe("BEGIN; SELECT lease_fence('k', $token), lease_renew('k', 'a', '1 h'), lease_try('new', 'a', '1 h')");
# What it wrote gets to the standby by somebody else's commit.
$primary->safe_psql('postgres', q{SELECT lease_renew('k2', 'a', '1 h'), lease_try('k2', 'a', '1 h'), lease_break('k2')});
caught_up();
is($primary->safe_psql('postgres', q{SELECT string_agg(coalesce(name, '-') || '/' || kind, ' ' ORDER BY name) FROM lease_waiters}), 'k/fence new/busy', 'who is busy on the primary');
is($standby->safe_psql('postgres', 'SELECT * FROM lease_waiters'), '', 'is not there on the standby');
is($standby->safe_psql('postgres', q{SELECT sum(waiters) FROM leases}), 0, 'nor among the waiters of its leases');
$open->query_safe('COMMIT');
$open->quit;

for my $call ("lease_fence('k', $token)", q{lease_fence('k', 1)}, q{lease_fence('unknown', 1)}, q{lease_break('k')}, q{lease_break('unknown')}, q{lease_purge('1 h')}, q{lease_attach('k', 'a')}, q{lease_detach('k', 'b')})
{
	is_deeply([ Lease::Node::answer($standby, "SELECT $call") ], [ '', '25006' ], "standby: $call is refused");
	my $read_only = [ Lease::Node::answer($primary, "BEGIN READ ONLY; SELECT $call; COMMIT") ];
	if ($call =~ /^lease_fence/)
	{
		is($read_only->[1], $call =~ /$token/ ? '' : 'LEASE', "read-only transaction: $call answers");
	}
	else
	{
		is($read_only->[1], '25006', "read-only transaction: $call is refused");
	}
}
is_deeply([ Lease::Node::answer($standby, q{CALL lease_acquire('k', 'b', '1 h', '0')}) ], [ '', '25006' ], 'standby: lease_acquire is refused');
is_deeply([ Lease::Node::answer($standby, q{CALL lease_watch('k', 1, '0')}) ], [ '', '25006' ], 'standby: lease_watch is refused');
is($primary->safe_psql('postgres', q{BEGIN READ ONLY; CALL lease_watch('k', 1, '1 s'); COMMIT}), $token, 'read-only transaction: lease_watch works');

# Promoted: the holder goes on, its fence passes, and tokens rise.
$primary->safe_psql('postgres', q{SELECT lease_break('gone')});
caught_up();
$primary->stop;
$standby->promote;
is($standby->safe_psql('postgres', "SELECT lease_renew('k', 'a', '1 h'), lease_fence('k', $token) IS NOT NULL"), 't|t', 'promoted: the tenure goes on behind its fence');
$standby->safe_psql('postgres', q{SELECT lease_break('k')});
cmp_ok($standby->safe_psql('postgres', q{SELECT lease_token('k', 'b') WHERE lease_try('k', 'b', '1 h')}), '>', $token, 'and the next token is higher');
is_deeply([ Lease::Node::answer($standby, "SELECT lease_fence('k', $token)") ], [ '', 'LEASE' ], 'the old one is refused');

Lease::Node::unhurt($standby);
$standby->stop;
done_testing();
