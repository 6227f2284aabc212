# The gate of a lease is a lock that no other lease and no advisory lock of a
# user meets.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha256);
use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('gate');
my $holder = $node->background_psql('postgres', on_error_stop => 1);
my $pid = $holder->query_safe('SELECT pg_backend_pid()');
my $gates = "SELECT classid, objid, objsubid, mode FROM pg_locks
	WHERE locktype = 'advisory' AND pid = $pid ORDER BY 1, 2";

sub held_by_holder
{
	my ($name) = @_;
	$holder->query_safe('BEGIN');
	is($holder->query_safe(qq{SELECT lease_try('$name', 'a', '1 min')}),
		't', "'$name' is taken in a block that stays open");
	return $node->safe_psql('postgres', $gates);
}

# The tag
my ($class, $object, $sub, $mode) = split /\|/, held_by_holder('job');
is("$class|$object", join('|', unpack('NN', sha256('job'))),
	'the gate of a lease is named by the first 8 bytes of SHA-256 of its name');
ok($sub != 1 && $sub != 2, 'in a space that is not that of users');
is($mode, 'ExclusiveLock', 'a new tenure has its gate exclusively');
my ($low, $high) = map { unpack 'l', pack 'L', $_ } $object, $class;
is( $node->safe_psql('postgres',
		qq{SELECT pg_try_advisory_xact_lock($high, $low),
			pg_try_advisory_xact_lock((${high}::bigint << 32) | (${low}::bigint & 4294967295))}),
	't|t', 'advisory locks with the same numbers are free');
is_deeply(
	[ Lease::Node::answer($node, q{SELECT lease_try('job', 'b', '1 min')}) ],
	[ 'f', '' ], 'the lease is not');
$holder->query_safe('ROLLBACK');
is($node->safe_psql('postgres', $gates), '', 'the gate ends with the transaction');

# Other names. The last collides with 'job' in hash_bytes_extended(): its 12
# bytes come from running Bob Jenkins' mix and final backwards from that value.
my $collides = 'xICxDF3_CaWx';
SKIP:
{
	skip 'a server of another byte order hashes otherwise', 1
	  if unpack('L', pack('N', 1)) == 1;
	is( $node->safe_psql('postgres',
			qq{SELECT hashtextextended('$collides', 0) = hashtextextended('job', 0)}),
		't', "'$collides' collides with 'job' in the server's 64-bit hash");
}
for my $name ('job2', 'JOB', 'job ', $collides)
{
	my ($other_class, $other_object) = split /\|/, held_by_holder($name);
	isnt("$other_class|$other_object", "$class|$object", "'$name' has another gate");
	is_deeply(
		[ Lease::Node::answer($node, q{
			SET lock_timeout = '1s';
			SELECT lease_try('job', 'b', '1 min'), lease_renew('job', 'b', '1 min'),
				lease_token('job', 'b') > 0, lease_release('job', 'b'),
				lease_try('job', 'c', '1 min'), lease_release('job', 'c')}) ],
		[ 't|t|t|t|t|t', '' ],
		"'$name' held in an open block: 'job' is not disturbed");
	$holder->query_safe('ROLLBACK');
}

# Of another database
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION lease');
held_by_holder('job');
is_deeply(
	[ Lease::Node::answer($node,
		q{SELECT lease_try('job', 'b', '1 min'), lease_release('job', 'b')}, 'other') ],
	[ 't|t', '' ],
	'the same name in another database is another lease');
$holder->query_safe('COMMIT');

# A call that ends in false, and one that changes no tenure, leave no gate.
$holder->query_safe('BEGIN');
is($holder->query_safe(
		q{SELECT lease_try('job', 'b', '1 min'), lease_renew('job', 'a', '1 min'), lease_try('job', 'a', '1 min')}),
	'f|t|t', 'a losing try, a renewal and an extension');
is($node->safe_psql('postgres', $gates), '', 'keep no gate');
$holder->query_safe('ROLLBACK');
$holder->query_safe('BEGIN');
is($holder->query_safe(q{SELECT lease_try_any('{job,free}', 'b', '1 min')}),
	'free', 'lease_try_any that found the first busy');
is(scalar(() = $node->safe_psql('postgres', $gates) =~ /Exclusive/g), 1,
	'keeps the gate of what it took only');
$holder->query_safe('ROLLBACK');
# A try that found the lease free and its row locked had the gate for a moment.
$node->safe_psql('postgres', q{SELECT lease_release('job', 'a')});
my $locker = $node->background_psql('postgres', on_error_stop => 1);
$locker->query_safe('BEGIN');
$locker->query_safe(q{SELECT 1 FROM dist_lock WHERE name = 'job' FOR UPDATE});
$holder->query_safe('BEGIN');
is($holder->query_safe(q{SELECT lease_try('job', 'a', '1 min')}),
	'f', 'a try on a free lease whose row is locked by hand');
is($node->safe_psql('postgres', $gates), '', 'gives the gate back at once');
$locker->query_safe('ROLLBACK');
is($node->safe_psql('postgres', q{SELECT lease_try('job', 'b', '1 min')}),
	't', 'so that the next one gets the lease beside that open block');
$locker->quit;
$holder->query_safe('ROLLBACK');
$holder->quit;

Lease::Node::unhurt($node);
$node->stop;
done_testing();
