# Logical replication of all tables takes dist_lock along. To move to another server, and back,
# leases that are live stay live and tokens rise. While both sides are in use it is no way to share
# leases: what is a copy on one side is overwritten, or stops the replication.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Pages;
use PostgreSQL::Test::Utils;
use Test::More;

my ($old, $new) = map { Lease::Node::make($_, streaming => 'logical', wal_retrieve_retry_interval => '100ms') } qw(old new);
my $bare = PostgreSQL::Test::Cluster->new('bare');
$bare->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
$bare->append_conf('postgresql.conf', "wal_retrieve_retry_interval = '100ms'");
$bare->start;

my ($set_forward) = examples('doc/reference.md', 'Failover, restore, move', 'sql');

sub granted
{
	my ($on, $name, $owner) = @_;
	return $on->safe_psql('postgres', "SELECT lease_token('$name', '$owner') WHERE lease_try('$name', '$owner', '1 h')");
}

# $to receives what is committed on $from, until unsubscribed().
sub subscribe
{
	my ($from, $to, $name, $options) = @_;
	my $connection = $from->connstr('postgres') =~ s/'/''/gr;
	$to->safe_psql('postgres', "CREATE SUBSCRIPTION $name CONNECTION '$connection' PUBLICATION everything" . ($options // ''));
	return;
}

sub arrived
{
	my ($from, $to, $name) = @_;
	$to->wait_for_subscription_sync($from, $name);
	$from->wait_for_catchup($name);
	return;
}

$old->safe_psql('postgres', 'CREATE PUBLICATION everything FOR ALL TABLES');
is($old->safe_psql('postgres', q{SELECT string_agg(tablename, ',') FROM pg_publication_tables}), 'dist_lock', 'FOR ALL TABLES has the table of leases, and no sequence');

# To a server that has no lease: the subscription is refused.
my $connection = $old->connstr('postgres') =~ s/'/''/gr;
is((Lease::Node::answer($bare, "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION everything"))[1], '42P01', 'a subscriber without the extension: the subscription is refused');
$bare->stop;

# To a new server, which made the extension for itself.
my %token = map { $_ => granted($old, $_, 'a') } qw(live ended);
$old->safe_psql('postgres', q{SELECT lease_release('ended', 'a'), lease_try('cooling', 'a', '1 h'), lease_release('cooling', 'a', '1 h'), lease_try('purged', 'a', '1 h'), lease_release('purged', 'a')});
my $rows = q{SELECT d::text FROM dist_lock d ORDER BY name};
subscribe($old, $new, 'forth');
arrived($old, $new, 'forth');
is($new->safe_psql('postgres', $rows), $old->safe_psql('postgres', $rows), 'the rows are copied');
$old->safe_psql('postgres', q{SELECT lease_renew('live', 'a', '2 h'), lease_release('live', 'x'), lease_try('added', 'a', '1 h'); SELECT lease_purge('0')});
$token{added} = $old->safe_psql('postgres', q{SELECT lease_token('added', 'a')});
arrived($old, $new, 'forth');
is($new->safe_psql('postgres', $rows), $old->safe_psql('postgres', $rows), 'and renewals, grants and purges follow');
is($new->safe_psql('postgres', q{SELECT string_agg(name || '=' || state, ' ' ORDER BY name) FROM leases}), 'added=held cooling=cooling live=held', 'a subscriber sees who holds what');
is($new->safe_psql('postgres', q{SELECT lease_token('live', 'a'), lease_try('live', 'b', '1 h'), lease_try('cooling', 'b', '1 h')}), "$token{live}|f|f", 'what is held there is nobody else\'s here');

# A lease that both sides grant has two holders, and the copies of one of them end.
granted($new, 'both', 'new');
my $log = -s $new->logfile;
granted($old, 'both', 'old');
# (18 has words of its own for it.)
$new->wait_for_log(qr/duplicate key value violates unique constraint "dist_lock_pkey"|conflict=insert_exists/, $log);
is($new->safe_psql('postgres', q{SELECT lease_token('both', 'new') IS NOT NULL, lease_token('both', 'old') IS NULL}), 't|t', 'a row made on both sides stops the replication; the subscriber keeps its own');
$new->safe_psql('postgres', q{DELETE FROM dist_lock WHERE name = 'both'});
arrived($old, $new, 'forth');
is($new->safe_psql('postgres', q{SELECT lease_token('both', 'old') IS NOT NULL}), 't', 'with that row deleted it goes on');
$new->safe_psql('postgres', q{SELECT lease_break('both'), lease_try('both', 'new', '1 h')});
$old->safe_psql('postgres', q{SELECT lease_renew('both', 'old', '1 h')});
arrived($old, $new, 'forth');
is($new->safe_psql('postgres', q{SELECT lease_token('both', 'new') IS NULL, lease_token('both', 'old') IS NOT NULL}), 't|t', 'a copy that was taken here is overwritten by a renewal there');

# The move: nobody takes leases on the old server any more.
$old->safe_psql('postgres', q{REVOKE EXECUTE ON FUNCTION lease_try(text, text, interval) FROM PUBLIC});
$new->safe_psql('postgres', 'DROP SUBSCRIPTION forth; CREATE PUBLICATION everything FOR ALL TABLES');
is($new->safe_psql('postgres', qq{SELECT lease_renew('live', 'a', '1 h', $token{live}), lease_fence('live', $token{live}) IS NOT NULL}), 't|t', 'moved: the holder goes on');
my $highest = $old->safe_psql('postgres', 'SELECT greatest((SELECT max(token) FROM dist_lock), (SELECT last_value FROM dist_lock_token))');
cmp_ok(granted($new, $_, 'b'), '>', $highest, "moved: the next token of '$_' is higher than any before") for qw(purged unknown);
$new->safe_psql('postgres', q{SELECT lease_break('added')});
my $last = granted($new, 'added', 'b');
cmp_ok($last, '>', $highest, 'moved: also that of a row that was copied');

# And back: the old server takes the rows as they are now. Its sequence is behind.
$old->safe_psql('postgres', 'TRUNCATE dist_lock');
subscribe($new, $old, 'back');
arrived($new, $old, 'back');
is($old->safe_psql('postgres', $rows), $new->safe_psql('postgres', $rows), 'back: the rows are copied');
$old->safe_psql('postgres', q{DROP SUBSCRIPTION back; SELECT lease_break('added')});
cmp_ok(granted($old, 'added', 'c'), '>', $last, 'back: the next token of a row that came along is higher');
$old->safe_psql('postgres', $set_forward);
cmp_ok(granted($old, 'other', 'c'), '>', $last, 'back: with the sequence set to the clock, every token is');

Lease::Node::unhurt($_) for $old, $new;
$_->stop for $old, $new;
done_testing();
