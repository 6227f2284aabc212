# A session that meets nothing but errors, of every kind that a call can end with, keeps the memory and
# the locks that it had, and works as ever afterwards. LONG=1: 100,000 of them.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Queue qw(acquire asleep nothing_left queued);
use Lease::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('errors', log_min_messages => 'panic', client_connection_check_interval => '0');
my $look = Lease::Session->connect($node);
my ($busy, $head, $session) = map { Lease::Session->connect($node, client_min_messages => 'error') } 1 .. 3;

$look->must(q{
	SELECT lease_try('held', 'other', '1 day'), lease_try('queue', 'other', '1 day'), lease_try('mine', 'me', '1 day'), lease_try('busy', 'me', '1 day');
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused' USING ERRCODE = 'LQ001'; END $$;
	CREATE TRIGGER refuse BEFORE INSERT ON dist_lock FOR EACH ROW WHEN (NEW.name = 'refused') EXECUTE FUNCTION refuse();
	CREATE TABLE fenced (v int);
	CREATE TRIGGER fenced BEFORE INSERT ON fenced FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('mine')});
$busy->must(q{BEGIN; SELECT lease_release('busy', 'me')});
acquire($head, 'queue', 'head', '1 min');
queued($look, 1);

# What is asked, and the answer: an SQLSTATE, or '' for a time that was up. Those that wait come
# seldom, and wait a millisecond.
my @at_once = (
	[ q{SELECT lease_fence('held', 1)}, 'LEASE' ],
	[ q{SELECT lease_fence('unknown', 1)}, 'LEASE' ],
	[ q{INSERT INTO fenced VALUES (1)}, 'LEASE' ],
	[ q{SELECT lease_try(NULL, 'a', '1 s')}, '22004' ],
	[ q{SELECT lease_try(repeat('n', 256), repeat('o', 100000), '1 s')}, '22023' ],
	[ q{SELECT lease_try('n', 'a', '1 month')}, '22023' ],
	[ q{SELECT lease_renew('mine', 'me', '106750000 days')}, '22008' ],
	[ q{SELECT lease_renew_all(ARRAY['mine', 'held', NULL], 'me', '1 h')}, '22004' ],
	[ q{SELECT lease_renew_all(array_fill('mine'::text, ARRAY[1000]), 'me', '106750000 days')}, '22008' ],
	[ q{SELECT lease_try_any(ARRAY['refused', 'held'], 'a', '1 s')}, 'LQ001' ],
	[ q{SELECT lease_try('refused', 'a', '1 s')}, 'LQ001' ],
	[ q{CALL lease_acquire('refused', 'a', '1 s')}, 'LQ001' ],
	[ q{CALL lease_watch('held', 1, '-1 s')}, '22023' ],
	[ q{SELECT lease_purge(NULL)}, '22004' ],
	[ q{SELECT lease_try('new', 'a', '1 h') FROM (SELECT pg_cancel_backend(pg_backend_pid()) OFFSET 0) c}, '57014' ],
	[ q{DO $$ BEGIN PERFORM lease_try('new', 'a', '1 h'), lease_fence('held', 1); END $$}, 'LEASE' ],
	[ q{DO $$ BEGIN FOR i IN 1 .. 5 LOOP BEGIN PERFORM lease_try('new', 'a', '1 h'), lease_fence('new', 1); EXCEPTION WHEN SQLSTATE 'LEASE' THEN END; END LOOP; RAISE 'over' USING ERRCODE = 'LQ002'; END $$}, 'LQ002' ],
	[ q{BEGIN READ ONLY; SELECT lease_try('n', 'a', '1 s'); COMMIT}, '25006' ]);
my @waiting = (
	[ q{SELECT lease_renew('busy', 'me', '1 h')}, '55P03' ],
	[ q{SELECT lease_try('busy', 'me', '1 h')}, '55P03' ],
	[ q{CALL lease_acquire('queue', 'me', '1 h', '1 ms')}, '' ],
	[ q{SET LOCAL statement_timeout = 1; CALL lease_acquire('queue', 'me', '1 h')}, '57014' ],
	[ q{BEGIN; SET LOCAL statement_timeout = 2; CALL lease_acquire('queue', 'me', '1 h'); COMMIT}, '57014' ],
	[ q{SET LOCAL statement_timeout = 1; CALL lease_watch('unknown', NULL)}, '57014' ]);

my %wrong;
sub meet
{
	my ($sql, $state) = @{ $_[0] };
	my $got = $session->query($sql);
	$wrong{"$sql: '$got'"}++ if $got ne $state;
	$session->must('ROLLBACK') if $session->answer->{transaction} ne 'I';
	return;
}

sub rounds
{
	my ($count) = @_;
	for my $round (1 .. $count)
	{
		meet($_) for @at_once, $round % 5 ? () : $waiting[ $round / 5 % @waiting ];
	}
	return;
}

# Bytes in the memory contexts of the session, their number, and kB that are its own.
sub memory
{
	my ($bytes, $contexts) = split /\|/, $session->must(q{SELECT sum(total_bytes), count(*) FROM pg_backend_memory_contexts});
	my ($kb) = slurp_file("/proc/$session->{pid}/status") =~ /^RssAnon:\s+(\d+)/m;
	return ($bytes, $contexts, $kb);
}

$session->must(q{SET lock_timeout = '1ms'});
my $rounds = $ENV{LONG} ? 5600 : 200;
rounds($rounds / 6);
my @before = memory();
rounds($rounds);
my @after = memory();
is(join("\n", sort keys %wrong), '', 'each was answered with its error');
note "before: @before, after: @after";
cmp_ok($after[0] - $before[0], '<=', 16384, 'the memory contexts hold no more than before');
cmp_ok($after[1] - $before[1], '<=', 5, 'nor are there more of them, but for what catalogs are cached in');
cmp_ok($after[2] - $before[2], '<', 400, 'the process takes no more memory');

# As ever.
$busy->must('ROLLBACK');
is($session->must(q{SELECT lease_try('mine', 'me', '1 h'), lease_renew('busy', 'me', '1 h'), lease_release('busy', 'me'), lease_try('new', 'me', '1 h')}), 't|t|t|t', 'then calls that succeed');
$look->must(q{SELECT lease_break('queue')});
is($head->got =~ /^\d+$/ ? 'token' : 'none', 'token', 'the head of the queue gets its lease');
$head->must(q{SELECT lease_release('queue', 'head')});
acquire($session, 'queue', 'me', '1 min', '10 s');
like($session->got, qr/^\d+$/, 'and then the session that met the errors');
is($session->must(q{BEGIN; SELECT lease_fence('mine', lease_token('mine', 'me')); INSERT INTO fenced VALUES (1); COMMIT; SELECT count(*) FROM fenced}) =~ s/\s//gr, '1', 'behind the fence it writes');
nothing_left($look, 'after the errors');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
