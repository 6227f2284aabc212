# Whoever waits for a lock on the table holds no page of it meanwhile: vacuum may wait for the
# page, and others for vacuum, which no deadlock detector would see; nor the gate of its lease.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Session;
use Test::More;

my $node = Lease::Node::make('pin');
$node->safe_psql('postgres', q{
	INSERT INTO dist_lock (name, token) SELECT 'n' || n, n FROM generate_series(1, 1000) n});
my ($reader, $vacuum, $ddl, $caller) = map { Lease::Session->connect($node) } 1 .. 4;

sub waits
{
	my ($session, $event) = @_;
	return $node->poll_query_until('postgres',
		"SELECT wait_event_type || '/' || wait_event = '$event' FROM pg_stat_activity WHERE pid = $session->{pid}");
}

# The reader has the first page, so vacuum stops there, and the call comes before it at the last.
for my $call ('lease_try(name, $$me$$, $$1 h$$)', 'lease_renew(name, $$me$$, $$1 h$$)',
	'lease_release(name, $$me$$)', 'lease_purge($$0$$) > 0')
{
	$reader->must('UPDATE dist_lock SET grants = grants');    # something to freeze on each page
	$reader->must('BEGIN; DECLARE c CURSOR FOR SELECT ctid FROM dist_lock; FETCH c');
	$vacuum->send('VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) dist_lock');
	ok(waits($vacuum, 'BufferPin/BufferPin'), "$call: vacuum waits for the first page");
	$ddl->send('BEGIN; LOCK TABLE dist_lock IN SHARE MODE; COMMIT');
	ok(waits($ddl, 'Lock/relation'), 'somebody waits for vacuum');
	$caller->send("SELECT $call FROM (SELECT 'n1000' AS name) AS the");
	ok(waits($caller, 'Lock/relation'), 'the call waits for that one');
	$reader->must('COMMIT');
	ok($vacuum->done(30), 'vacuum goes through');
	$caller->{node}->safe_psql('postgres', "SELECT pg_cancel_backend($caller->{pid})") unless $vacuum->done;
	is($caller->got, 't', 'and so does the call');
	$ddl->answer;
	$vacuum->answer;
}

# Who queues for the table waits for the caller itself.
for my $call (q{lease_try('n5', 'me', '1 h')}, q{lease_renew('n5', 'me', '1 h')}, q{lease_release('n5', 'me')})
{
	$caller->must('BEGIN; SELECT count(*) FROM dist_lock');
	$ddl->send('BEGIN; LOCK TABLE dist_lock; COMMIT');
	ok(waits($ddl, 'Lock/relation'), "$call: somebody waits for the caller");
	$caller->send("SELECT $call");
	my $answered = $caller->done(10);
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($caller->{pid})") unless $answered;
	is($caller->got, 't', 'and does not stop it');
	$caller->must('COMMIT');
	$ddl->answer;
}

# Nor does whoever loses keep the lock that it waited for.
for my $call (q{SELECT lease_try('n5', 'me', '1 h')}, q{CALL lease_acquire('n5', 'me', '1 h', '10 ms', NULL)})
{
	$reader->must(q{BEGIN; SELECT FROM dist_lock WHERE name = 'n5' FOR UPDATE});
	$caller->must('BEGIN; SELECT count(*) FROM dist_lock');
	$ddl->send('BEGIN; LOCK TABLE dist_lock; COMMIT');
	ok(waits($ddl, 'Lock/relation'), "$call: somebody waits for the table");
	is($caller->must($call), $call =~ /CALL/ ? '' : 'f', 'the row is busy');
	is($caller->must(q{
		SELECT string_agg(mode, ' ') FROM pg_locks
		WHERE pid = pg_backend_pid() AND relation = 'dist_lock'::regclass}),
		'AccessShareLock', 'who lost has the lock of its own query only');
	$_->must('COMMIT') for $reader, $caller;
	$ddl->answer;
}

# A release that waits for the table does not keep the lease's fences out meanwhile.
my $token = $caller->must(q{SELECT lease_try('n6', 'me', '1 h'); SELECT lease_token('n6', 'me')});
$token =~ s/^t\s+//;
$ddl->must('BEGIN; LOCK TABLE dist_lock IN SHARE MODE');
$caller->send(q{SELECT lease_release('n6', 'me')});
ok(waits($caller, 'Lock/relation'), 'a release waits for the table');
$reader->must("SET lock_timeout = '10 s'; SELECT lease_fence('n6', $token)");
pass('a fence passes');
$ddl->must('COMMIT');
is($caller->got, 't', 'the release goes on');
$_->quit for $reader, $vacuum, $ddl, $caller;

done_testing();
