# pg_basebackup under load, and recovery to a point in time: what was granted before that point is
# held, what came later never was. Tokens come back then, until the sequence is set forward.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Pages;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('archived', streaming => 1);
$node->enable_archiving;
$node->restart;
sub sql { return $node->safe_psql('postgres', @_) }

my ($set_forward) = examples('doc/reference.md', 'Failover, restore, move', 'sql');

sub granted
{
	my ($on, $name, $owner) = @_;
	return $on->safe_psql('postgres', "SELECT lease_token('$name', '$owner') WHERE lease_try('$name', '$owner', '1 h')");
}

# A copy that is made while leases change hands, and ends up as the server was at that point.
my $old = granted($node, 'old', 'a');
my $load = Lease::Node::pgbench_start($node, '-c 2', q{SELECT lease_try('busy ' || :client_id, 'a', '1 h'), lease_release('busy ' || :client_id, 'a');});
$node->backup('copy');
Lease::Node::pgbench_stop($load, 'leases changed hands beside the backup');

sql(q{SELECT lease_release('old', 'a', '1 h'); SELECT pg_create_restore_point('before')});
my $token = granted($node, 'job', 'a');
my $highest = sql('SELECT max(token) FROM dist_lock');
sql(q{SELECT pg_create_restore_point('after')});
sql(q{SELECT lease_renew('job', 'a', '5 h'), lease_try('later', 'a', '1 h'); SELECT lease_break('old'); SELECT lease_break('job')});
sql(q{SELECT count(*) FROM generate_series(1, 100) g WHERE lease_try('more ' || g, 'a', '1 h')});
my $last = granted($node, 'last', 'a');
sql('SELECT pg_switch_wal()');

sub recovered_to
{
	my ($point) = @_;
	my $copy = PostgreSQL::Test::Cluster->new($point);
	$copy->init_from_backup($node, 'copy', has_restoring => 1, standby => 0);
	$copy->append_conf('postgresql.conf', "recovery_target_name = '$point'\nrecovery_target_action = 'promote'\narchive_mode = off");
	$copy->start;
	$copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die "not recovered to '$point'";
	return $copy;
}

my $before = recovered_to('before');
is($before->safe_psql('postgres', q{SELECT lease_token('job', 'a') IS NULL, lease_token('old', 'a') IS NULL, lease_try('old', 'b', '1 h')}), 't|t|f', 'before: the grant never was, and what is kept from everybody is');
cmp_ok(granted($before, 'job', 'b'), '>', $old, 'before: another gets the lease, tokens go on from there');
cmp_ok(granted($before, 'job', 'b'), '<', $last, 'before: where others were given already');
# What the documentation says to do.
$before->safe_psql('postgres', $set_forward);
cmp_ok(granted($before, 'new', 'b'), '>', $last, 'before: with the sequence set to the clock they are higher than all');
$before->stop;

my $after = recovered_to('after');
is($after->safe_psql('postgres', q{SELECT lease_token('job', 'a'), lease_token('later', 'a') IS NULL, lease_try('job', 'b', '1 h'), lease_try('old', 'b', '1 h')}), "$token|t|f|f", 'after: the grant is there, nothing later is');
is($after->safe_psql('postgres', qq{SELECT lease_renew('job', 'a', '1 h', $token), lease_fence('job', $token) IS NOT NULL}), 't|t', 'after: its holder goes on, and passes the fence');
cmp_ok(granted($after, 'new', 'b'), '>', $highest, 'after: the next token is higher than all before that point');
is($after->safe_psql('postgres', q{SELECT count(*) FROM leases WHERE name LIKE 'busy %' AND state IN ('held', 'free')}), 2, 'after: what changed hands beside the backup is one or the other');

Lease::Node::unhurt($_) for $node, $before, $after;
$after->stop;
$node->stop;
done_testing();
