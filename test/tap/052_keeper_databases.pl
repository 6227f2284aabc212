# The keeper as a guest in its database: it is in nobody's way, comes and goes with
# the extension, and whoever ends it or takes its place leaves no lease behind.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Keeper;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('databases', max_worker_processes => 6, max_prepared_transactions => 2);
my $root = Lease::Session->connect($node);
my $log = new_log($node);

sub to { return Lease::Session->connect($node, database => $_[0]) }

$root->must('CREATE DATABASE seed');
{
	my $session = to('seed');
	$session->must('CREATE EXTENSION lease');
	$session->quit;
}

sub make_databases { $root->must("CREATE DATABASE $_ TEMPLATE seed") for @_; return; }

# Right after the last attached session left; all wait for others to go, five seconds.
make_databases('dropped', 'copied', 'detached', 'two_a', 'two_b');
{
	my @sessions = map { to($_) } 'dropped', 'copied', 'detached';
	attached($_, '1 h', 'a', 'b') for @sessions;
	$sessions[2]->must(q{SELECT lease_detach('a', 'me'), lease_detach('b', 'me')});
	$_->quit for @sessions;
	my %statement = (
		'DROP DATABASE after the last attached session' => 'DROP DATABASE dropped',
		'CREATE DATABASE TEMPLATE likewise' => 'CREATE DATABASE copy TEMPLATE copied',
		'DROP DATABASE after one that had detached' => 'DROP DATABASE detached');
	my %running = map { $_ => Lease::Session->connect($node)->send($statement{$_}) } keys %statement;
	for my $test (sort keys %running)
	{
		my $answer = $running{$test}->answer;
		is($answer->{message}, '', $test);
		cmp_ok($answer->{seconds}, '<', 4.5, sprintf '%s: in %.1f s', $test, $answer->{seconds});
		$running{$test}->quit;
	}
	my $copy = to('copy');
	is($copy->must(q{SELECT lease_try('a', 'other', '1 h'), lease_try('b', 'other', '1 h')}), 't|t', 'with the leases released');
	$copy->quit;
}

# Two databases, each with its own keeper, the same names and a short ttl
{
	my @sessions = map { to($_) } 'two_a', 'two_b';
	attached($_, '2 s', 'same') for @sessions;
	isnt(keeper($sessions[0]), keeper($sessions[1]), 'two databases have two keepers');
	sleep 2.3;
	isnt(held($_, 'same'), '', 'each keeps its own') for @sessions;
	$sessions[0]->quit;
	sleep 0.1;
	isnt(held($sessions[1], 'same'), '', 'and releases its own');
	# Told to go, with no successor in a database that goes.
	my $answer = $root->send('DROP DATABASE two_b WITH (FORCE)')->answer;
	is($answer->{message}, '', 'DROP DATABASE WITH (FORCE) beside an attached session');
	cmp_ok($answer->{seconds}, '<', 4.5, sprintf 'in %.1f s', $answer->{seconds});
}
log_is_quiet($node, $log, 'databases come and go', qr/terminating connection due to administrator command/);

# Many sessions attach at once where there is no keeper: they need one worker.
{
	my @sessions = map { to('seed') } 1 .. 20;
	$_->must(q{SELECT lease_try(pg_backend_pid()::text, 'me', '2 s')}) for @sessions;
	$_->send(q{SELECT lease_attach(pg_backend_pid()::text, 'me')}) for @sessions;
	my @answers = map { $_->got } @sessions;
	is("@answers", join(' ', ('t') x 20), 'twenty attach at once');
	is(scalar(keepers($sessions[0])), 1, 'there is one keeper');
	sleep 1;
	is($sessions[0]->must(q{SELECT count(*) FROM leases WHERE state = 'held' AND (min_margin > '1 s' OR remaining > '1 s')}), 20, 'all are kept, from the first moment');

	# Terminated, several times in a row, and cancelled
	my $kill = Lease::Session->connect($node);
	for my $round (1 .. 15)
	{
		$kill->must(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'lease keeper'});
		sleep 0.003 * $round if $round % 3;
	}
	sleep 1;
	my $kept = q{SELECT count(*) FROM leases WHERE state = 'held' AND grants = 1};
	is($sessions[0]->must($kept), 20, 'terminated fifteen times: all are kept');
	my $keeper = keeper($sessions[0]);
	for (1 .. 30)
	{
		$kill->must("SELECT pg_cancel_backend($keeper)");
		sleep 0.01;
	}
	sleep 1.7;
	is($sessions[0]->must($kept), 20, 'cancelled thirty times in a row: all are kept');
	is(keeper($sessions[0]), $keeper, 'cancelled, it stays');

	# ... while others attach
	my @outcomes;
	for my $round (1 .. 40)
	{
		my $session = $sessions[ $round % 20 ];
		$session->send(qq{SELECT lease_try('r$round', 'me', '1 h'), lease_attach('r$round', 'me')});
		$kill->must(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'lease keeper'});
		push @outcomes, $session->got;
	}
	is(join(' ', @outcomes), join(' ', ('t|t') x 40), 'terminated while others attach: they do');
	$_->quit for @sessions[ 1 .. 19 ];
	ok(eventually($sessions[0], q{SELECT count(*) = 2 FROM leases WHERE name LIKE 'r%' AND state = 'held'}, 5), 'and all is released with its session');
	$sessions[0]->quit;
	ok(eventually($root, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'lease keeper'}, 10), 'then it goes');
	$kill->quit;
}
log_is_quiet($node, $log, 'terminated and cancelled', qr/terminating connection due to administrator command|canceling statement due to user request|is not a PostgreSQL backend process/);

# No worker slot is free.
{
	make_databases(map { "full$_" } 1 .. 6);
	my @sessions = map { to("full$_") } 1 .. 6;
	my ($failed, $state, $answer);
	for my $session (@sessions)
	{
		$session->must(q{SELECT lease_try('a', 'me', '1 h')});
		$answer = $session->send(q{SELECT lease_attach('a', 'me')})->answer;
		($failed, $state) = ($session, $answer->{state}) if $answer->{state};
		last if $failed;
	}
	is($state, '53400', 'no worker slot is free');
	like($answer->{message}, qr/could not start the keeper/, 'the message says so');
	my (undef, undef, $err) = $node->psql($failed->must('SELECT current_database()'), q{SELECT lease_attach('a', 'me')});
	like($err, qr/HINT:.*max_worker_processes/s, 'the hint how to help it');
	is($failed->must(q{SELECT session_pid IS NULL, state, grants FROM leases WHERE name = 'a'}), 't|held|1', 'nothing changed');
	is($failed->must(q{SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'}), '0', 'no lock is left');
	is($failed->must(q{SELECT lease_renew('a', 'me', '1 h'), lease_release('a', 'me')}), 't|t', 'the lease is renewed and released as ever');
	is($failed->query(q{BEGIN; SELECT lease_try('a', 'me', '1 h'), lease_attach('a', 'me'); COMMIT}), '53400', 'in a block, too');
	$failed->query('ROLLBACK');
	# Room comes.
	$_->quit for grep { $_ != $failed } @sessions;
	ok(eventually($root, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'lease keeper'}, 10), 'keepers go');
	is($failed->must(q{SELECT lease_try('a', 'me', '1 h'), lease_attach('a', 'me')}), 't|t', 'then it can be attached');
	$failed->quit;
}

# What an administrator sets for a database
make_databases('settings');
$root->must("ALTER DATABASE settings SET $_") for 'default_transaction_read_only = on', q{default_transaction_isolation = 'serializable'},
  'default_transaction_deferrable = on', q{idle_in_transaction_session_timeout = '100ms'}, q{statement_timeout = '50ms'}, q{lock_timeout = '10ms'},
  q{idle_session_timeout = '100ms'}, q{synchronous_commit = off}, q{search_path = 'nowhere'}, q{role = 'pg_monitor'}, q{row_security = off}, q{log_statement = 'all'}, q{session_replication_role = replica};
# What the test's own sessions in it say.
my %usual = (database => 'settings', default_transaction_read_only => 'off', default_transaction_isolation => 'read committed', statement_timeout => 0, lock_timeout => 0,
	idle_session_timeout => 0, idle_in_transaction_session_timeout => 0, search_path => 'public', role => 'none', log_statement => 'none');
if ($root->must('SHOW server_version_num') >= 170000)
{
	$root->must(q{ALTER DATABASE settings SET transaction_timeout = '100ms'});
	$usual{transaction_timeout} = 0;
}
$log = new_log($node);
{
	my $session = Lease::Session->connect($node, %usual);
	attached($session, '1200 ms', 'a');
	my $keeper = keeper($session);
	sleep 1.4;
	isnt(held($session, 'a'), '', 'settings of the database do not reach the keeper');
	is(keeper($session), $keeper, 'nor end it');
	log_is_quiet($node, $log, 'settings of the database');

	# The extension goes while something is attached, and comes again.
	$session->must('DROP EXTENSION lease');
	is($root->must(q{SELECT count(*) FROM pg_locks WHERE pid = } . $keeper . q{ AND relation > 16384}), '0', 'the keeper does not hold what is dropped');
	ok(gone($session, 5), 'the extension is dropped: its keeper goes');
	$session->must('CREATE EXTENSION lease');
	attached($session, '1200 ms', 'again');
	my $other = Lease::Session->connect($node, %usual);
	attached($other, '1200 ms', 'of another');
	for my $round (1 .. 10)
	{
		$session->must('DROP EXTENSION lease; CREATE EXTENSION lease');
		attached($session, '1200 ms', 'again');
		attached($other, '1200 ms', 'of another');
	}
	sleep 1.4;
	is(join(' ', map { held($session, $_) ne '' } 'again', 'of another'), '1 1', 'dropped and made again: the next leases are kept, in the same session and in another');
	is(scalar(keepers($session)), 1, 'by one keeper') if eventually($session, "SELECT count(*) <= 1 FROM $Lease::Keeper::keepers", 5);
	$other->quit;
	ok(eventually($session, q{SELECT lease_token('of another', 'me') IS NULL}, 5), 'and released when their session ends');
	log_is_quiet($node, $log, 'extension dropped and made again');

	# No renewal without the extension, though its table stays.
	# From 17 on a table goes with its row type, which its script took out.
	$session->must('ALTER EXTENSION lease ADD TYPE dist_lock') if $node->pg_version >= 17;
	$session->must('ALTER EXTENSION lease DROP TABLE dist_lock; DROP EXTENSION lease');
	my $expiry = $session->must(q{SELECT expiry FROM dist_lock WHERE name = 'again'});
	sleep 0.7;
	is($session->must(q{SELECT expiry FROM dist_lock WHERE name = 'again'}), $expiry, 'the table of an extension that is gone: nothing is renewed');
	ok(gone($session, 5), 'and the keeper goes with the extension');
	$session->must('DROP TABLE dist_lock CASCADE');

	# ALTER EXTENSION and other DDL beside it
	$session->must('CREATE EXTENSION lease');
	attached($session, '1200 ms', 'altered');
	$session->must('CREATE SCHEMA elsewhere');
	is($session->query('ALTER EXTENSION lease SET SCHEMA elsewhere'), '0A000', 'ALTER EXTENSION SET SCHEMA is refused');
	my $from = new_log($node);
	$session->must($_) for 'CREATE TABLE member (); ALTER EXTENSION lease ADD TABLE member; ALTER EXTENSION lease DROP TABLE member',
	  'ALTER SCHEMA public RENAME TO private', 'SET search_path = private', 'ALTER TABLE dist_lock ADD COLUMN note text', 'REINDEX INDEX CONCURRENTLY dist_lock_session', 'VACUUM FULL dist_lock', 'REINDEX TABLE dist_lock', 'CLUSTER dist_lock USING dist_lock_pkey', 'VACUUM dist_lock', 'ANALYZE dist_lock';
	# Locks on the whole table, for a while: the keeper does not queue for them.
	my $locker = Lease::Session->connect($node, %usual, search_path => 'private');
	for my $mode ('SHARE', 'ACCESS EXCLUSIVE')
	{
		$locker->must("BEGIN; LOCK TABLE dist_lock IN $mode MODE");
		sleep 0.25;
		is($root->must(q{SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE backend_type = 'lease keeper' AND NOT granted}), '0', "LOCK TABLE IN $mode MODE: the keeper does not wait for it");
		$locker->must('COMMIT');
		sleep 0.1;
	}
	sleep 0.5;
	isnt(held($session, 'altered'), '', 'DDL beside it: kept');
	# Not ours any more: an error in the log now and then, and its sessions' leases lapse.
	$session->must('ALTER TABLE dist_lock RENAME note TO remark; ALTER INDEX dist_lock_session RENAME TO x');
	sleep 0.4;
	$session->must('ALTER INDEX x RENAME TO dist_lock_session');
	log_is_quiet($node, $from, 'DDL', qr/"dist_lock" is not as extension/);
	my $errors = () = slurp_file($node->logfile, $from) =~ /Its index "dist_lock_session" is gone/g;
	cmp_ok($errors, '<', 6, "an index that is renamed does not fill the log ($errors errors)");
	$_->quit for $session, $locker;
}

# A superuser's table in a database that is locked for new connections
make_databases('closed');
{
	my $session = to('closed');
	$session->must(q{SELECT lease_try('a', 'me', '1 h')});
	$root->must('ALTER DATABASE closed WITH ALLOW_CONNECTIONS false');
	my $answer = $session->send(q{SELECT lease_attach('a', 'me')})->answer;
	is($answer->{state}, '53400', 'a database that accepts no connections gets no keeper');
	$root->must('ALTER DATABASE closed WITH ALLOW_CONNECTIONS true CONNECTION LIMIT 0');
	is($session->must(q{SELECT lease_attach('a', 'me')}), 't', 'a connection limit does not count');
	$session->quit;
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
