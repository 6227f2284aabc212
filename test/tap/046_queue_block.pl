# In a transaction block, in DO and in procedures lease_acquire and lease_watch
# work, commit nothing of the caller's, and leave nothing behind when they fail.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Queue;
use Test::More;

my $node = Lease::Node::make(
	'block',
	max_prepared_transactions => 5,
	deadlock_timeout          => '100ms',
	# All that the server says about a statement that commits on its way.
	log_min_duration_statement => 0,
	log_lock_waits             => 'on',
	track_activity_query_size  => 2048,
	log_parameter_max_length   => -1);
my $look = Lease::Session->connect($node);
my @s = map { Lease::Session->connect($node) } 1 .. 3;

sub nothing_held
{
	my ($session) = @_;
	return $look->must("SELECT coalesce(backend_xmin::text, '') || '/' || coalesce(backend_xid::text, '')
		FROM pg_stat_activity WHERE pid = $session->{pid}");
}

$look->must(q{CREATE TABLE t (i int)});

# A READ COMMITTED block has no snapshot while it waits: as head, deep in the
# queue, behind a fence, behind an open change, and as a watcher.
{
	$look->must(q{SELECT lease_try('snap', 'x', '1 h')});
	for my $level ('READ COMMITTED')
	{
		$_->must("BEGIN ISOLATION LEVEL $level; SELECT count(*) FROM pg_class") for @s;
		acquire($s[0], 'snap', 'a');
		asleep($look, $s[0]);
		acquire($s[1], 'snap', 'b');
		$s[2]->send("CALL lease_watch('snap', " . $look->must(q{SELECT lease_token('snap', 'x')}) . ')');
		asleep($look, @s);
		is(nothing_held($s[0]), '/', "$level block: the head has neither snapshot nor transaction ID");
		is(nothing_held($s[1]), '/', "$level block: nor has who is deep in the queue");
		is(nothing_held($s[2]), '/', "$level block: nor has a watcher");
		$look->must(q{SELECT lease_release('snap', 'x')});
		like($s[0]->got, qr/^\d+$/, "$level block: the head has it");
		is($s[0]->query('SELECT count(*) FROM t'), '0', "$level block: goes on with a snapshot");
		$s[0]->must(q{SELECT lease_release('snap', 'a'); COMMIT});
		like($s[1]->got, qr/^\d+$/, "$level block: the next one has it");
		like($s[2]->got, qr/^\d*$/, "$level block: the watcher is back");
		$s[1]->must(q{SELECT lease_release('snap', 'b'); COMMIT});
		$s[2]->must('COMMIT');
	}
	nothing_left($look, 'after blocks');
}

# Behind an open fence and an open grant.
{
	my $token = $look->must(q{SELECT lease_try('fence', 'x', '300 ms')}) && $look->must(q{SELECT lease_token('fence', 'x')});
	$s[2]->must(qq{BEGIN; SELECT lease_fence('fence', $token)});
	$s[0]->must('BEGIN');
	acquire($s[0], 'fence', 'a');
	ok(eventually($look, "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $s[0]{pid}"),
		'waits behind the fence when the lease has expired');
	is(nothing_held($s[0]), '/', 'behind a fence: no snapshot');
	$s[2]->must('COMMIT');
	like($s[0]->got, qr/^\d+$/, 'has it when the fence ends');
	$s[1]->must('BEGIN');
	acquire($s[1], 'fence', 'b');
	asleep($look, $s[1]);
	is(nothing_held($s[1]), '/', 'behind an open grant: no snapshot');
	$s[0]->must('ROLLBACK');
	like($s[1]->got, qr/^\d+$/, 'has it when the grant rolls back');
	$s[1]->must('ROLLBACK');
	nothing_left($look, 'after fence');
}

# A block goes on after time ran out, with no warning, no lock, no transaction ID.
{
	$look->must(q{SELECT lease_try('held', 'x', '1 h')});
	for my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
	{
		$s[0]->must("BEGIN ISOLATION LEVEL $level; SELECT count(*) FROM pg_class");
		acquire($s[0], 'held', 'a', '1 min', '50 ms');
		is($s[0]->got, '', "$level: time is up");
		is_deeply($s[0]->answer->{notices}, [], "$level: no warning");
		is($s[0]->answer->{transaction}, 'T', "$level: the block goes on");
		is($s[0]->query('SELECT pg_current_xact_id_if_assigned()'), '', "$level: no transaction ID");
		nothing_left($look, $level);
		is( $look->must(q{SELECT lease_release('held', 'x'), lease_try('held', 'y', '1 h'), lease_release('held', 'y'), lease_try('held', 'x', '1 h')}),
			't|t|t|t', "$level: it keeps nobody from the lease while its block is open");
		# Deep in the queue.
		acquire($s[1], 'held', 'b');
		queued($look, 1);
		acquire($s[0], 'held', 'a', '1 min', '50 ms');
		is($s[0]->got, '', "$level: time is up, deep in the queue");
		is_deeply($s[0]->answer->{notices}, [], "$level: no warning, deep in the queue");
		queued($look, 1);
		$look->must("SELECT pg_cancel_backend($s[1]{pid})");
		is($s[1]->got, '57014', "$level: cancelled");
		$s[0]->must('COMMIT');
		is_deeply($s[0]->answer->{notices}, [], "$level: no warning at commit");
	}
	nothing_left($look, 'after time ran out');
}

# Deep in the queue, then its head, with a `wait`, in a block: what it held on its
# way is given back, and no more than the gate of what it got is kept.
{
	my $mine = "SELECT coalesce(string_agg((l.objsubid - 27649)::text, ' '), '') FROM pg_locks l WHERE pid = $s[0]{pid} AND $Lease::Queue::ours";
	$look->must(q{SELECT lease_try('moves up', 'x', '1 h')});
	for my $wait ('500 ms', '1 min')
	{
		acquire($s[1], 'moves up', 'b');
		queued($look, 1);
		$s[0]->must('BEGIN');
		acquire($s[0], 'moves up', 'a', '1 h', $wait);
		queued($look, 2);
		$look->must("SELECT pg_cancel_backend($s[1]{pid})");
		is($s[1]->got, '57014', "moves up, wait $wait: the one before it leaves");
		$look->must(q{SELECT lease_release('moves up', 'x')}) if $wait eq '1 min';
		like($s[0]->got, $wait eq '1 min' ? qr/^\d+$/ : qr/^$/, "moves up, wait $wait: the answer");
		is_deeply($s[0]->answer->{notices}, [], "moves up, wait $wait: no warning");
		is($look->must($mine), $wait eq '1 min' ? '0' : '', "moves up, wait $wait: its place is given back");
		$s[0]->must('COMMIT');
		is_deeply($s[0]->answer->{notices}, [], "moves up, wait $wait: no warning at commit");
	}
	$look->must(q{SELECT lease_release('moves up', 'a'), lease_try('moves up', 'x', '300 ms')});
	$s[2]->must(q{BEGIN; SELECT lease_fence('moves up', (SELECT token FROM dist_lock WHERE name = 'moves up'))});
	$s[0]->must('BEGIN');
	acquire($s[0], 'moves up', 'a', '1 h', '1 min');
	ok(eventually($look, "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $s[0]{pid}"), 'moves up: behind a fence');
	$s[2]->must('COMMIT');
	like($s[0]->got, qr/^\d+$/, 'moves up: the fence ends');
	is_deeply($s[0]->answer->{notices}, [], 'moves up: no warning after a fence');
	is($look->must($mine), '0', 'moves up: the gate is kept');
	$s[0]->must('ROLLBACK');
	nothing_left($look, 'moves up');
}

# ROLLBACK TO gives a grant to the next one, though its transaction goes on.
{
	$look->must(q{DELETE FROM dist_lock});
	$s[0]->must('BEGIN; SAVEPOINT s');
	acquire($s[0], 'sub', 'a');
	like($s[0]->got, qr/^\d+$/, 'granted in a savepoint');
	waiting($look, $s[1], q{CALL lease_acquire('sub', 'b', '1 h')});
	$s[0]->must('ROLLBACK TO s');
	like($s[1]->got(10), qr/^\d+$/, 'ROLLBACK TO: the next one has it, though the block goes on');
	cmp_ok($s[1]->answer->{seconds}, '<', 5, 'soon');
	$s[0]->must('COMMIT');
	$s[1]->must(q{SELECT lease_release('sub', 'b')});

	# A release that rolls back to a savepoint is none.
	$look->must(q{SELECT lease_try('sub', 'a', '1 h')});
	$s[0]->must(q{BEGIN; SAVEPOINT s; SELECT lease_release('sub', 'a')});
	waiting($look, $s[1], q{CALL lease_acquire('sub', 'b', '1 h')});
	$s[0]->must('ROLLBACK TO s');
	ok(!$s[1]->done(0.3), 'a release that rolls back to a savepoint: nobody is granted');
	$s[0]->must(q{SELECT lease_release('sub', 'a'); COMMIT});
	like($s[1]->got(10), qr/^\d+$/, 'one that commits: the next one has it');
	$s[1]->must(q{SELECT lease_release('sub', 'b')});
}

# A release that rolls back, a predecessor's grant that does.
{
	$look->must(q{SELECT lease_try('back', 'x', '1 h')});
	acquire($s[0], 'back', 'a', '1 h');
	queued($look, 1);
	acquire($s[1], 'back', 'b', '1 h');
	queued($look, 2);
	$s[2]->must(q{BEGIN; SELECT lease_release('back', 'x'); ROLLBACK});
	ok(!$s[0]->done(0.2), 'a release that rolls back: nobody is granted');
	is($look->must(q{SELECT lease_token('back', 'x') IS NOT NULL}), 't', 'and the holder holds it');
	$look->must("SELECT pg_cancel_backend($s[0]{pid})");
	$s[0]->got;
	$s[0]->must('BEGIN');
	$look->must("SELECT pg_cancel_backend($s[1]{pid})");
	$s[1]->got;
	acquire($s[0], 'back', 'a', '1 h');
	queued($look, 1);
	acquire($s[1], 'back', 'b', '1 h');
	queued($look, 2);
	$look->must(q{SELECT lease_release('back', 'x')});
	like($s[0]->got(10), qr/^\d+$/, 'granted in a block');
	ok(!$s[1]->done(0.2), 'the next one waits for the end of that');
	is($look->must(q{SELECT lease_try('back', 'thief', '1 h')}), 'f', 'nobody overtakes it');
	$s[0]->must('ROLLBACK');
	like($s[1]->got(10), qr/^\d+$/, 'its grant rolled back: the next one has it');
	cmp_ok($s[1]->answer->{seconds}, '<', 5, 'soon');
	$s[1]->must(q{SELECT lease_release('back', 'b')});
	nothing_left($look, 'after rollbacks');
}

# Two that each hold a fence and wait for the other's lease: not a hang.
{
	$look->must(q{SELECT lease_try('one', 'a', '400 ms'), lease_try('two', 'b', '400 ms')});
	my @token = map { $look->must("SELECT token FROM dist_lock WHERE name = '$_'") } 'one', 'two';
	$s[0]->must("BEGIN; SELECT lease_fence('one', $token[0])");
	$s[1]->must("BEGIN; SELECT lease_fence('two', $token[1])");
	acquire($s[0], 'two', 'a');
	acquire($s[1], 'one', 'b');
	my $first;
	for (1 .. 1000)
	{
		($first) = grep { $_->done(0.02) } @s[ 0, 1 ] and last;
	}
	ok($first, 'a deadlock ends') or die;
	my ($second) = grep { $_ != $first } @s[ 0, 1 ];
	# The one that is ended makes way for the other: either may be heard first.
	($first, $second) = ($second, $first) if $first->got ne '40P01';
	is($first->got(10), '40P01', 'by an error for one of the two');
	like($second->got(10), qr/^\d+$/, 'the other one has its lease');
	$_->must('ROLLBACK') for $first, $second;

	$look->must(q{SELECT lease_try('one', 'a', '1 h'), lease_try('two', 'b', '1 h')});
	@token = map { $look->must("SELECT token FROM dist_lock WHERE name = '$_'") } 'one', 'two';
	$s[0]->must("BEGIN; SELECT lease_fence('one', $token[0])");
	$s[1]->must("BEGIN; SELECT lease_fence('two', $token[1])");
	acquire($s[0], 'two', 'a', '1 h', '300 ms');
	acquire($s[1], 'one', 'b', '1 h', '300 ms');
	is(join(' ', map { $_->got(10) } @s[ 0, 1 ]), ' ', 'while both leases live, the time runs out');
	$_->must('ROLLBACK') for @s[ 0, 1 ];
	nothing_left($look, 'after deadlocks');
}

# An expired lease behind an open fence: the old holder's calls answer.
{
	$look->must(q{SELECT lease_try('old', 'x', '300 ms')});
	my $token = $look->must(q{SELECT token FROM dist_lock WHERE name = 'old'});
	$s[2]->must("BEGIN; SELECT lease_fence('old', $token)");
	acquire($s[0], 'old', 'a', '1 h');
	ok(eventually($look, "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $s[0]{pid}"), 'waits behind an open fence');
	is($look->must(q{SET client_min_messages = error; SELECT lease_renew('old', 'x', '1 h'), lease_release('old', 'x'), lease_token('old', 'x')}), 'f|f|', 'the old holder is told');
	is($s[2]->query(q{SELECT lease_renew('old', 'x', '1 h')}), 'f', 'inside its fence, too');
	$s[2]->must('COMMIT');
	like($s[0]->got(10), qr/^\d+$/, 'when the fence ends, the head has it');
	$s[0]->must(q{SELECT lease_release('old', 'a')});

	# Old holder and waiter at once: its renewal came before the expiry, and is open.
	$look->must(q{SELECT lease_try('renewing', 'x', '300 ms')});
	$s[2]->must(q{BEGIN; SELECT 1/lease_renew('renewing', 'x', '1 h')::int});
	acquire($s[0], 'renewing', 'a', '1 h');
	ok(eventually($look, "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $s[0]{pid}"), 'waits for a renewal that is open at the expiry');
	$s[2]->must('COMMIT');
	ok(!$s[0]->done(0.2), 'the renewal commits: it waits on');
	$look->must(q{SELECT lease_release('renewing', 'x')});
	like($s[0]->got(10), qr/^\d+$/, 'released: it has it');
	$s[0]->must(q{SELECT lease_release('renewing', 'a')});
	nothing_left($look, 'after fences');
}

# Nothing of the caller's is committed: from DO, a procedure, a message of several
# statements, a pipeline, a pipeline with a portal that was left half read.
{
	$look->must(q{SELECT lease_try('mine', 'x', '1 h');
		CREATE PROCEDURE caller() LANGUAGE plpgsql AS $$
		DECLARE t bigint;
		BEGIN INSERT INTO t VALUES (2); CALL lease_acquire('mine', 'a', '1 min', NULL, t); END $$});
	my $call = q{CALL lease_acquire('mine', 'a', '1 min')};
	my %case = (
		'DO' => sub { $s[0]->send(q{DO $$ DECLARE t bigint; BEGIN INSERT INTO t VALUES (1); CALL lease_acquire('mine', 'a', '1 min', NULL, t); END $$}) },
		'a procedure' => sub { $s[0]->send('CALL caller()') },
		'several statements' => sub { $s[0]->send("INSERT INTO t VALUES (3); $call") },
		'a pipeline' => sub { $s[0]->send_pipeline([ 'INSERT INTO t VALUES (4)' ], [ $call ]) },
		'a pipeline with an open portal' => sub {
			$s[0]->send_pipeline([ { sql => 'INSERT INTO t VALUES (5), (5) RETURNING i', rows => 1 } ], [ $call ]);
		},
		'a block' => sub { $s[0]->must('BEGIN; INSERT INTO t VALUES (7)'); $s[0]->send($call) });
	for my $what (sort keys %case)
	{
		$case{$what}->();
		asleep($look, $s[0]);
		is($look->must('SELECT count(*) FROM t'), '0', "$what: nothing is committed while it waits");
		$look->must("SELECT pg_cancel_backend($s[0]{pid})");
		is($s[0]->got, '57014', "$what: cancelled");
		$s[0]->query('ROLLBACK') if $what eq 'a block';
		is($look->must('SELECT count(*) FROM t'), '0', "$what: nothing was committed");
		nothing_left($look, $what);
	}

	# And all of it is, with the lease, when it was granted.
	for my $what (sort keys %case)
	{
		$case{$what}->();
		asleep($look, $s[0]);
		$look->must(q{SELECT lease_release('mine', 'x')});
		my $answer = $s[0]->answer(10);
		is($answer->{state}, '', "$what: granted") or diag($answer->{message});
		$s[0]->query('COMMIT') if $what eq 'a block';
		cmp_ok($look->must('SELECT count(*) FROM t'), '>', 0, "$what: what the caller did is committed");
		isnt($look->must(q{SELECT lease_token('mine', 'a')}), '', "$what: with the lease");
		$look->must(q{DELETE FROM t; SELECT lease_release('mine', 'a'), lease_try('mine', 'x', '1 h')});
		nothing_left($look, $what);
	}

	# What follows it in its pipeline is one transaction with the grant.
	$s[0]->send_pipeline([ $call ], [ 'INSERT INTO t VALUES (1)' ], [ 'SELECT 1/0' ]);
	asleep($look, $s[0]);
	is($look->must("SELECT backend_xmin IS NULL AND backend_xid IS NULL FROM pg_stat_activity WHERE pid = $s[0]{pid}"), 't', 'first in a pipeline: no snapshot');
	$look->must(q{SELECT lease_release('mine', 'x')});
	is($s[0]->got(10), '22012', 'an error later in the pipeline');
	is($look->must(q{SELECT count(*), lease_token('mine', 'a') FROM t}), '0|', 'undoes the grant');
	nothing_left($look, 'pipeline');
	$look->must(q{SELECT lease_try('mine', 'x', '1 h')});

	# Two in one pipeline, the second for another lease.
	$s[0]->send_pipeline([ $call ], [ q{CALL lease_acquire('second', 'a', '1 min')} ], [ q{CALL lease_acquire('mine', 'a', '2 min')} ]);
	asleep($look, $s[0]);
	$look->must(q{SELECT lease_release('mine', 'x')});
	is($s[0]->got(10), $look->must(q{SELECT string_agg(lease_token(n, 'a')::text, E'\n') FROM unnest('{mine,second,mine}'::text[]) n}), 'three in a pipeline');
	is_deeply($s[0]->answer->{notices}, [], 'without a word');
	$look->must(q{SELECT lease_release('mine', 'a'), lease_release('second', 'a')});
	nothing_left($look, 'three in a pipeline');
}

# A caught error in DO, outside a block: the caller goes on, and nothing is left.
{
	$look->must(q{SELECT lease_try('caught', 'x', '1 h')});
	for my $block (0, 1)
	{
		$s[0]->must('BEGIN') if $block;
		for my $kind ('acquire', 'watch')
		{
			my $call = $kind eq 'acquire' ? q{lease_acquire('caught', 'a', '1 min', NULL, tok)}
			  : q{lease_watch('caught', live, NULL, tok)};
			$s[0]->send(qq{DO \$\$
				DECLARE tok bigint; live bigint := lease_token('caught', 'x'); big text := repeat('x', 100000);
				BEGIN
					BEGIN
						INSERT INTO t VALUES (1);
						CALL $call;
					EXCEPTION WHEN query_canceled THEN
						big := big || (SELECT count(*) FROM pg_locks l WHERE pid = pg_backend_pid() AND $Lease::Queue::ours);
						RAISE NOTICE 'left: %', substr(big, 100001);
					END;
					INSERT INTO t VALUES (2);
					CALL lease_acquire('caught', 'a', '1 min', '20 ms', tok);
					RAISE NOTICE 'then: %', tok;
					CALL lease_acquire('caught also', 'a', '1 min', '20 ms', tok);
					RAISE NOTICE 'another: %', tok IS NOT NULL;
				END \$\$});
			asleep($look, $s[0]);
			$look->must("SELECT pg_cancel_backend($s[0]{pid})");
			is($s[0]->got(10), '', "$kind, caught, block $block: the DO ends well");
			is_deeply($s[0]->answer->{notices}, [ 'NOTICE: left: 0', 'NOTICE: then: <NULL>', 'NOTICE: another: t' ], "$kind, caught, block $block: nothing was left");
			$s[0]->must('COMMIT') if $block && $kind eq 'watch';
		}
		is($look->must('SELECT string_agg(DISTINCT i::text, $$ $$) FROM t'), '2', "caught, block $block: what the caller did after it is committed");
		$look->must('DELETE FROM t');
		nothing_left($look, "caught, block $block");
	}
}

# A procedure of the caller's that commits between two, and inside a cursor loop.
{
	$look->must(q{DELETE FROM dist_lock; CREATE PROCEDURE committing() LANGUAGE plpgsql AS $$
		DECLARE tok bigint; r record;
		BEGIN
			FOR r IN SELECT g, repeat('x', 5000) AS x FROM generate_series(1, 3) g LOOP
				CALL lease_acquire('c' || r.g, 'a', '1 min', NULL, tok);
				INSERT INTO t VALUES (length(r.x));
				COMMIT;
			END LOOP;
			CALL lease_acquire('c4', 'a', '1 min', '30 ms', tok);
			ROLLBACK;
			CALL lease_acquire('c5', 'a', '1 min', '30 ms', tok);
			RAISE NOTICE 'c5: %', tok IS NOT NULL;
			CALL lease_watch('c5', tok, '10 ms', tok);
			RAISE NOTICE 'c5: %', tok IS NOT NULL;
		END $$});
	$look->must(q{SELECT lease_try(n, 'x', '200 ms') FROM unnest('{c1,c2,c3}'::text[]) n; SELECT lease_try('c5', 'x', '1 h')});
	is($s[0]->query('CALL committing()'), '', 'a procedure that commits and rolls back between them');
	is($look->must('SELECT count(*) FROM t'), '3', 'it committed its rows');
	is($look->must(q{SELECT string_agg(name, ' ' ORDER BY name) FROM dist_lock WHERE owner = 'a'}), 'c1 c2 c3', 'and its leases');
	is_deeply($s[0]->answer->{notices}, [ 'NOTICE: c5: f', 'NOTICE: c5: t' ], 'what another holds it did not get, but saw')
	  or diag(explain $s[0]->answer->{notices});
	$look->must('DELETE FROM t');
	nothing_left($look, 'a procedure that commits');
}

# Called by a function, by a cursor over CALL, with the rights of another role.
{
	$look->must(q{DELETE FROM dist_lock;
		CREATE ROLE caller; CREATE ROLE definer;
		CREATE FUNCTION by_function(n text, w interval) RETURNS bigint LANGUAGE plpgsql AS $$
		DECLARE tok bigint; BEGIN CALL lease_acquire(n, 'a', '1 min', w, tok); RETURN tok; END $$;
		CREATE FUNCTION by_cursor(n text, w interval) RETURNS bigint LANGUAGE plpgsql AS $$
		DECLARE r record;
		BEGIN FOR r IN EXECUTE format('CALL lease_acquire(%L, %L, %L, %L)', n, 'a', '1 min', w) LOOP RETURN r.token; END LOOP; END $$;
		CREATE FUNCTION by_definer(n text, w interval) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
		DECLARE tok bigint; BEGIN CALL public.lease_acquire(n, 'a', '1 min', w, tok); RETURN tok; END $$;
		ALTER FUNCTION by_definer OWNER TO definer});
	for my $how ('by_function', 'by_cursor', 'by_definer')
	{
		for my $block (0, 1)
		{
			$s[0]->must('BEGIN') if $block;
			$s[0]->must('SET ROLE caller');
			$look->must(qq{SELECT lease_try('$how', 'x', '1 h')});
			is($s[0]->query("SELECT $how('$how', '20 ms')"), '', "$how, block $block: time is up") or diag($s[0]->answer->{message});
			is($s[0]->query('SELECT current_user'), 'caller', "$how, block $block: still the same role");
			waiting($look, $s[0], "SELECT $how('$how', NULL), 1");
			$look->must(qq{SELECT lease_release('$how', 'x')});
			like($s[0]->got(10), qr/^\d+\|1$/, "$how, block $block: granted");
			$s[0]->must('COMMIT') if $block;
			is($look->must(qq{SELECT granted_to FROM dist_lock WHERE name = '$how'}), $how eq 'by_definer' ? 'definer' : 'caller', "$how, block $block: to the role that called");
			$look->must(qq{SELECT lease_release('$how', 'a')});
			$s[0]->must('RESET ROLE');
			nothing_left($look, "$how, block $block");
		}
	}
}

# What belongs to the session and to the block stays as it is.
{
	$look->must(q{DELETE FROM dist_lock; SELECT lease_try('stays', 'x', '1 h')});
	$s[0]->must(q{CREATE TEMP TABLE session_temp (i int) ON COMMIT DELETE ROWS;
		DECLARE held CURSOR WITH HOLD FOR SELECT generate_series(1, 3);
		SELECT pg_advisory_lock(1), pg_advisory_lock_shared(2, 3);
		PREPARE stays AS SELECT 1; LISTEN stays; SET work_mem = '5MB'});
	for my $block (0, 1)
	{
		$s[0]->must(q{BEGIN; CREATE TEMP TABLE block_temp ON COMMIT DROP AS SELECT 1 AS i; INSERT INTO session_temp VALUES (1);
			SET LOCAL work_mem = '7MB'; SET LOCAL lock_timeout = '10s'; DECLARE c CURSOR FOR SELECT generate_series(1, 3);
			SELECT pg_advisory_xact_lock(4)}) if $block;
		my $stays = q{SELECT (SELECT count(*) FROM session_temp), current_setting('work_mem'), current_setting('lock_timeout'),
			(SELECT string_agg(mode, ' ' ORDER BY mode) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'),
			(SELECT count(*) FROM pg_cursors), (SELECT count(*) FROM pg_listening_channels())};
		my $before = $s[0]->must($stays);
		for my $wait ("'30 ms'", "'1 min'")
		{
			waiting($look, $s[0], "CALL lease_acquire('stays', 'a', '1 min', $wait)") if $wait eq "'1 min'";
			$s[0]->send("CALL lease_acquire('stays', 'a', '1 min', $wait)") if $wait ne "'1 min'";
			$look->must(q{SELECT lease_release('stays', 'x')}) if $wait eq "'1 min'";
			$s[0]->got;
			is($s[0]->answer->{state}, '', "block $block, wait $wait: no error");
			$s[0]->must(q{SELECT lease_release('stays', 'a')}) if $wait eq "'1 min'" && !$block;
			my $after = $s[0]->must($stays);
			# The gate of the grant is held to the end of the block.
			$after =~ s/ExclusiveLock ExclusiveLock ExclusiveLock/ExclusiveLock ExclusiveLock/ if $block;
			is($after, $before, "block $block, wait $wait: temporary tables, settings, advisory locks, cursors are as before");
		}
		is($s[0]->must('FETCH 1 FROM c; SELECT i FROM block_temp'), "1\n1", 'a cursor and a table of the block work') if $block;
		$s[0]->must('ROLLBACK') if $block;
		$look->must(q{SELECT lease_try('stays', 'x', '1 h')});
	}
	is($s[0]->must(q{FETCH ALL FROM held}), "1\n2\n3", 'a cursor WITH HOLD works');
	is($s[0]->must(q{SELECT pg_advisory_unlock(1), pg_advisory_unlock_shared(2, 3)}), 't|t', "the session's advisory locks were held all the time");
	$s[0]->must('CLOSE held; UNLISTEN *');
}

# Prepared transactions.
{
	$look->must(q{DELETE FROM dist_lock; SELECT lease_try('2pc', 'x', '1 h')});
	$s[0]->must('BEGIN');
	acquire($s[0], '2pc', 'a', '1 h');
	asleep($look, $s[0]);
	$look->must(q{SELECT lease_release('2pc', 'x')});
	my $token = $s[0]->got(10);
	is($s[0]->query(q{PREPARE TRANSACTION 'grant'}), '', 'a grant that waited is prepared');
	acquire($s[1], '2pc', 'b', '1 h');
	asleep($look, $s[1]);
	is(nothing_held($s[1]), '/', 'behind a prepared grant: no snapshot');
	$s[2]->send("CALL lease_watch('2pc', NULL)");
	asleep($look, $s[2]);
	$look->must(q{COMMIT PREPARED 'grant'});
	is($s[2]->got(10), $token, 'a watcher sees it when it commits');
	ok(!$s[1]->done(0.1), 'who waits goes on waiting');
	$s[0]->must(q{BEGIN; SELECT lease_release('2pc', 'a'); PREPARE TRANSACTION 'release'});
	ok(!$s[1]->done(0.1), 'a release that is prepared is none yet');
	my $start = time;
	$look->must(q{COMMIT PREPARED 'release'});
	like($s[1]->got(10), qr/^\d+$/, 'it commits: the next one has it');
	cmp_ok(time - $start, '<', 2.5, 'within about a second');
	nothing_left($look, 'prepared transactions');
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
