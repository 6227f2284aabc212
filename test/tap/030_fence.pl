# Fences beside other sessions and over a restart: prepared transactions keep the
# lease closed, release and break get their turn among busy fences, the holder's
# renewals notice nothing, and the log says who lost what.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Session;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);

my $node = Lease::Node::make(
	'fence',
	max_prepared_transactions => 10,
	autovacuum                => 'off',
	checkpoint_timeout        => '1h',
	log_min_messages          => 'log');

sub sql { return $node->safe_psql('postgres', @_) }
sub session { return Lease::Session->connect($node, client_min_messages => 'error', @_) }

# What the server logged since then.
my $logged = 0;
sub log_since
{
	my $text = slurp_file($node->logfile, $logged);
	$logged = -s $node->logfile;
	return $text;
}

# Takes the lease, and gives the token.
sub take
{
	my ($name, $owner) = @_;
	return sql("SELECT lease_token('$name', '$owner') WHERE lease_try('$name', '$owner', '1 h')");
}

sub expire { return sql("UPDATE dist_lock SET expiry = clock_timestamp() WHERE name = '$_[0]'") }

# Nothing is written by a fence: not a byte of WAL in a thousand of them.
my $token = take('quiet', 'a');
my $written = 1;
for my $attempt (1 .. 5)
{
	my $quiet = session();
	$quiet->must("SELECT lease_fence('quiet', $token)");
	my $before = $quiet->must('SELECT pg_current_wal_insert_lsn()');
	$quiet->must("DO \$\$ BEGIN FOR i IN 1..1000 LOOP PERFORM lease_fence('quiet', $token); END LOOP; END \$\$");
	$written = $quiet->must("SELECT pg_current_wal_insert_lsn() - '$before'");
	$quiet->quit;
	last if $written == 0;    # the server's own processes write now and then
}
is($written, 0, 'a thousand fences write no WAL');

# What the log says.
log_since();
my $old = take('logged', 'owner-of-it');
expire('logged');
take('logged', 'next');
my $text = log_since();
like($text, qr/LOG:  lease "logged" is taken over, its last tenure expired \d+\.\d s ago\n.*DETAIL:  Its owner was "owner-of-it" of role "\w+", its token $old\./,
	'a takeover of an expired lease is logged');
sql(q{SELECT lease_break('logged'), lease_break('logged')});
$text = log_since();
like($text, qr/LOG:  lease "logged" was broken by role "\w+"\n.*DETAIL:  Its owner was "next"/, 'a break is logged');
is(scalar(() = $text =~ /was broken/g), 1, 'once');
sql(q{SELECT lease_try('calm', 'a', '1 h'), lease_renew('calm', 'a', '1 h'), lease_release('calm', 'a'), lease_try('calm', 'b', '1 h'), lease_try('calm', 'c', '1 h')});
unlike(log_since(), qr/LOG:  lease /, 'what goes by plan is not');
# Names go into the log as they are, on one line each.
sql(q{SELECT lease_try(E'two\nlines', 'a', '1 us')});
sql(q{SELECT lease_try(E'two\nlines', 'b', '1 h')});
unlike(log_since(), qr/^lines/m, 'a name with a line feed makes no line of its own');

# Prepared transactions.
sub prepared
{
	my ($how, $restart) = @_;
	my $name = "prepared $how $restart";
	my $token = take($name, 'a');
	sql("BEGIN; SELECT lease_fence('$name', $token); CREATE TABLE IF NOT EXISTS written (v int); INSERT INTO written VALUES (1); PREPARE TRANSACTION 'p'");
	if ($restart)
	{
		$node->stop($restart);
		$node->start;
	}
	is(sql("SELECT lease_renew('$name', 'a', '1 h'), lease_token('$name', 'a')"), "t|$token", "$name: renewals go on");
	is(sql("SELECT kind, pid IS NULL FROM lease_waiters WHERE name = '$name'"), 'fence|t', "$name: lease_waiters shows it");
	expire($name);
	is(sql("SELECT lease_try('$name', 'b', '1 h')"), 'f', "$name: past its expiry, nobody gets it");
	my ($out, $err) = ('', '');
	sql("UPDATE dist_lock SET expiry = clock_timestamp() + interval '1 h' WHERE name = '$name'");
	$node->psql('postgres', "SET lock_timeout = '100 ms'; SELECT lease_break('$name')", stdout => \$out, stderr => \$err);
	like($err, qr/NOTICE:  waiting for transactions that use lease "$name"\nDETAIL:  A prepared transaction\.\n.*ERROR:  canceling statement due to lock timeout/,
		"$name: a break says for what it waits, within lock_timeout");
	is_deeply([ Lease::Node::answer($node, "SET lock_timeout = '100 ms'; SELECT lease_release('$name', 'a')") ], [ '', '55P03' ], "$name: so does a release");
	expire($name);
	my $waiter = session();
	$waiter->send("CALL lease_acquire('$name', 'w', '1 h', '30 s')");
	Lease::Session::asleep($waiter) or die 'does not wait';
	sql("$how PREPARED 'p'");
	cmp_ok($waiter->got, '>', $token, "$name: who waited gets it");
	cmp_ok($waiter->answer->{seconds}, '<', 20, "$name: at once");
	$waiter->quit;
	return;
}
prepared('COMMIT', '');
prepared('ROLLBACK', '');
prepared('COMMIT', 'fast');
prepared('ROLLBACK', 'immediate');
prepared('COMMIT', 'immediate');
is(sql('SELECT count(*) FROM written'), 3, 'what was committed is there');
# The session that prepared it does not count as behind the fence any more.
$token = take('after', 'a');
sql("CREATE TABLE guarded (v int); CREATE TRIGGER f BEFORE INSERT ON guarded FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('after')");
my $preparer = session();
$preparer->must("BEGIN; SELECT lease_fence('after', $token); PREPARE TRANSACTION 'q'");
is($preparer->query('INSERT INTO guarded VALUES (1)'), 'LEASE', 'PREPARE TRANSACTION ends the fence for its session');
$preparer->must("ROLLBACK PREPARED 'q'");
# The notice of a break names a process that is at work, and none that only prepared.
$preparer->must("BEGIN; SELECT lease_fence('after', $token); PREPARE TRANSACTION 'q'");
my $holder = session();
$holder->must("BEGIN; SELECT lease_fence('after', $token)");
my ($out, $err) = ('', '');
$node->psql('postgres', "SET lock_timeout = '100 ms'; SELECT lease_break('after')", stdout => \$out, stderr => \$err);
like($err, qr/DETAIL:  .*[Pp]rocess $holder->{pid}\b/, 'a break names who is behind the fence');
unlike($err, qr/$preparer->{pid}/, 'and not who has only prepared');
$preparer->must("ROLLBACK PREPARED 'q'");

# A session that dies behind its fence.
expire('after');
is(sql(q{SELECT lease_try('after', 'b', '1 h')}), 'f', 'behind an open fence nobody gets it');
sql("SELECT pg_terminate_backend($holder->{pid}, 10000)");
$node->poll_query_until('postgres', q{SELECT lease_try('after', 'b', '1 h')}) or die;
pass('a session that is terminated gives it back');

# Eight sessions that fence back to back; break and release get their turn, and renewals go on.
for my $ender ('lease_break', 'lease_release')
{
	my $name = "busy $ender";
	my $token = take($name, 'a');
	my @fencers = map { session() } 1 .. 8;
	my ($renewer, $ending) = (session(lock_timeout => '30s'), session());
	my ($ended, $refused, $passed, $renewals, $slowest, $asked) = (0, 0, 0, 0, 0, 0);
	my $fence = "BEGIN; SELECT lease_fence('$name', $token), pg_sleep(0.005); COMMIT";

	$_->send($fence) for @fencers;
	my $until = time + 60;
	while (($refused < 8 || !$ended) && time < $until)
	{
		for my $fencer (grep { !$_->{over} } @fencers)
		{
			$fencer->done or next;
			if ($fencer->answer->{state} eq 'LEASE') { $refused++; $fencer->{over} = 1; next; }
			die $fencer->answer->{message} if $fencer->answer->{state};
			$passed++;
			$fencer->send($fence);
		}
		if ($passed > 40 && !$asked)
		{
			$asked = time;
			$ending->send($ender eq 'lease_break' ? "SELECT lease_break('$name')" : "SELECT lease_release('$name', 'a')");
		}
		if (!$ended)
		{
			my $renewed = $renewer->must("SELECT lease_renew('$name', 'a', '1 h')");
			$renewals++ if $renewed eq 't';
			$slowest = $renewer->answer->{seconds} if $renewer->answer->{seconds} > $slowest;
			$ended = $ending->answer->{seconds} if $asked && $ending->done;
		}
	}
	is($ended ? $ending->got : 'late', 't', "$ender beside eight sessions that fence back to back is served");
	cmp_ok($ended, '<', 5, 'within five seconds (' . int($ended * 1000) . ' ms)');
	is($refused, 8, 'and they are refused from then on');
	cmp_ok($renewals, '>', 10, "renewals went on ($renewals)");
	cmp_ok($slowest, '<', 2, 'without delay (the slowest took ' . int($slowest * 1000) . ' ms)');
	$_->quit for @fencers, $renewer, $ending;
}

# The same while one fence stays open: the break waits, renewals do not.
$token = take('held open', 'a');
$holder = session();
$holder->must("BEGIN; SELECT lease_fence('held open', $token)");
my $breaker = session();
$breaker->send(q{SELECT lease_break('held open')});
Lease::Session::asleep($breaker) or die 'does not wait';
my ($renewer, $slowest) = (session(), 0);
for (1 .. 50)
{
	is($renewer->must(q{SELECT lease_renew('held open', 'a', '1 h')}), 't', 'renewed beside a break that waits') if $_ == 1;
	$renewer->must(q{SELECT 1 / lease_renew('held open', 'a', '1 h')::int});
	$slowest = $renewer->answer->{seconds} if $renewer->answer->{seconds} > $slowest;
}
cmp_ok($slowest, '<', 2, 'fifty times, without delay');
ok(!$breaker->done, 'the break waits all the time');
$holder->must('COMMIT');
is($breaker->got, 't', 'and succeeds when the fence ends');
cmp_ok($breaker->answer->{seconds}, '<', 30, 'at once');
is($renewer->query(q{SELECT lease_renew('held open', 'a', '1 h')}), 'f', 'then the lease is lost');

# Whoever passes finds the tenure live for as long as the transaction lasts, however short the time
# was between the look and the gate.
sql(q{SELECT lease_try('passed', 'a', '1 h')});
sql(q{CREATE TABLE outcome (passed bool)});
my $churn = Lease::Node::pgbench_start($node, '-M prepared', q{
SELECT lease_release('passed', 'a');
SELECT lease_try('passed', 'a', '1 h');
SELECT lease_renew('passed', 'a', '1 h');
});
Lease::Node::pgbench_ok($node, '-T 2 -c 3 -j 2', 'a passed fence stays true beside releases and new tenures', q{
DO $$
DECLARE mine bigint := lease_token('passed', 'a');
BEGIN
	BEGIN
		PERFORM lease_fence('passed', coalesce(mine, 1));
	EXCEPTION WHEN SQLSTATE 'LEASE' THEN
		INSERT INTO outcome VALUES (false);
		RETURN;
	END;
	IF lease_token('passed', 'a') IS DISTINCT FROM mine THEN
		RAISE 'token % passed, % is live', mine, lease_token('passed', 'a');
	END IF;
	INSERT INTO outcome VALUES (true);
END $$;
});
Lease::Node::pgbench_stop($churn, 'the holder changed all the time');
is(sql('SELECT count(*) > 20 FROM outcome GROUP BY passed'), "t\nt", 'many were refused, many passed');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
