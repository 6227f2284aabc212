# The keeper and its server: shutdowns of every kind, a standby that does not answer,
# a promotion, and keepers that start with the server.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Keeper;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('server', streaming => 1, max_worker_processes => 16, max_prepared_transactions => 2);
my $look = Lease::Session->connect($node);
$node->backup('copy');

sub stopped
{
	my ($mode, $test) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $start = time;
	my $done = eval { $node->stop($mode); 1 };
	cmp_ok(time - $start, '<', 5, sprintf '%s: the server stops in %.1f s', $test, time - $start) if $done;
	ok($done, "$test: the server stops");
	$node->stop('immediate') unless $done;
	return;
}

sub started
{
	$node->start;
	$look = Lease::Session->connect($node);
	return;
}

# Reload: the keeper reads the settings again.
{
	my $session = Lease::Session->connect($node);
	attached($session, '1 h', 'reload');
	my $keeper = keeper($look);
	my $log = new_log($node);
	$look->must(q{ALTER SYSTEM SET log_min_messages = 'debug5'});
	$look->must('SELECT pg_reload_conf()');
	my $until = time + 5;
	sleep 0.05 until slurp_file($node->logfile, $log) =~ /\[$keeper\].* DEBUG/ || time > $until;
	like(slurp_file($node->logfile, $log), qr/\[$keeper\].* DEBUG/, 'after a reload the keeper has the new settings');
	$look->must('ALTER SYSTEM RESET log_min_messages');
	$look->must('SELECT pg_reload_conf()');
	is(keeper($look), $keeper, 'and goes on');
	isnt(held($look, 'reload'), '', 'and so does what it keeps');

	# Smart: waits for the sessions, and keeps their leases meanwhile.
	$look->quit;
	$session->must(q{SELECT lease_renew('reload', 'me', '1 s')});
	$session->must(q{CREATE TEMP TABLE seen(at timestamptz)});
	system_or_bail('pg_ctl', '-D', $node->data_dir, '-m', 'smart', '-W', 'stop');
	sleep 1.3;
	isnt(held($session, 'reload'), '', 'smart shutdown: what sessions hold is kept while they are there');
	$session->quit;
	$until = time + 10;
	sleep 0.02 while -e $node->data_dir . '/postmaster.pid' && time < $until;
	ok(!-e $node->data_dir . '/postmaster.pid', 'when they have gone, the server stops');
	$node->{_pid} = undef;
}

for my $mode ('fast', 'immediate')
{
	started();
	my @sessions = map { Lease::Session->connect($node) } 1 .. 3;
	attached($sessions[$_], '1500 ms', "$mode $_", map { "$mode $_ $_" } 1 .. 20) for 0 .. 2;
	my $log = new_log($node);
	stopped($mode, "$mode shutdown with a keeper");
	log_is_quiet($node, $log, $mode, qr/administrator command|immediate shutdown|logical replication launcher/);
	started();
	is($look->must(qq{SELECT count(*) FROM leases WHERE name LIKE '$mode%' AND state = 'held' AND remaining > '1500 ms'}), 0, "$mode: what was held ends at its ttl");
	is(scalar(keepers($look)), 0, "$mode: no keeper comes back by itself");
	stopped('fast', "$mode: without a keeper");
}

# A commit that waits for a standby that does not come: the server can be stopped all the same.
started();
{
	my $session = Lease::Session->connect($node);
	attached($session, '800 ms', 'standby');
	$look->must(q{ALTER SYSTEM SET synchronous_standby_names = 'nobody'});
	$look->must('SELECT pg_reload_conf()');
	my $keeper = keeper($look);
	ok(eventually($look, "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $keeper", 10), 'a renewal waits for the standby');
	my $log = new_log($node);
	stopped('fast', 'while the keeper waits for a standby');
	log_is_quiet($node, $log, 'standby', qr/administrator command|logical replication launcher|canceling.* wait for synchronous replication/);
	$node->append_conf('postgresql.auto.conf', q{synchronous_standby_names = ''});
}

# So can one whose table is locked by a prepared transaction.
started();
{
	my $session = Lease::Session->connect($node);
	attached($session, '800 ms', 'locked');
	$session->must(q{BEGIN; LOCK TABLE dist_lock; PREPARE TRANSACTION 'p'});
	sleep 0.5;
	stopped('fast', 'while a prepared transaction locks the table');
	started();
	is($look->must(q{SELECT count(*) FROM pg_prepared_xacts}), '1', 'which is there again');
	$look->must(q{COMMIT PREPARED 'p'});
}

# Promotion: sessions of the old primary are not there, and nobody keeps their leases.
{
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($node, 'copy', has_streaming => 1);
	$standby->start;
	my $session = Lease::Session->connect($node);
	attached($session, '1 h', 'far');
	attached($session, '2 s', 'near');
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	my $there = Lease::Session->connect($standby);
	is($there->query(q{SELECT lease_attach('far', 'me')}), '25006', 'standby: attach is refused');
	is($there->query(q{SELECT lease_detach('far', 'me')}), '25006', 'standby: so is detach');
	is($there->must(qq{SELECT session_pid FROM leases WHERE name = 'far'}), $session->{pid}, 'standby: the view shows whose session it is');
	is(scalar(keepers($there)), 0, 'standby: no keeper');
	my $token = held($there, 'far');
	$node->stop('immediate');
	$standby->promote;
	is(held($there, 'far'), $token, 'promoted: what was held is held');
	is($there->must(q{SELECT lease_try('here', 'me', '1 h'), lease_attach('here', 'me')}), 't|t', 'promoted: leases are attached');
	ok(eventually($there, q{SELECT lease_token('far', 'me') IS NULL AND lease_token('near', 'me') IS NULL}, 5), 'then those of sessions elsewhere are released');
	isnt(held($there, 'here'), '', 'and those of sessions here kept');
	Lease::Node::unhurt($standby);
	$standby->stop;
}

# Keepers that start with the server
$node->append_conf('postgresql.conf', "lease.keeper_databases = 'postgres, other, Nowhere'");
my $log = new_log($node);
started();
is($look->must(q{SELECT lease_try('x', 'me', '1 h'), lease_attach('x', 'me'), current_setting('lease.keeper_databases')}), 't|t|postgres, other, Nowhere',
	'lease.keeper_databases without shared_preload_libraries: nothing happens');
log_is_quiet($node, $log, 'without preload', qr/not properly shut down|administrator command|immediate/);
is($look->query(q{SET lease.keeper_databases = 'x'}), '55P02', 'no session sets it');
{
	my $new = Lease::Session->connect($node);
	# From 17 on it takes names that nobody has defined.
	is($new->query(q{ALTER SYSTEM SET lease.max_ttl = '1 h'}), $node->pg_version >= 17 ? '' : '42704', 'ALTER SYSTEM does not know a setting');
	$new->must(q{SELECT lease_token('x', 'me')});
	is($new->query(q{ALTER SYSTEM SET lease.max_ttl = '1 h'}), '', 'until the session has loaded the library');
	$new->must('ALTER SYSTEM RESET lease.max_ttl');
	$new->quit;
}
$look->must('CREATE DATABASE other');
$look->quit;
# (Debian's setting for builds elsewhere does not count here.)
my ($libraries) = $node->config_data('--pkglibdir');
my $library = slurp_file($ENV{TEMP_CONFIG} // '/dev/null') =~ /\S/ ? "$ENV{LEASE_DEST}$libraries/lease" : 'lease';
$node->append_conf('postgresql.conf', "shared_preload_libraries = '$library'");
$log = new_log($node);
$node->restart;
$look = Lease::Session->connect($node);
{
	my $other = Lease::Session->connect($node, database => 'other');
	my ($boot, $idle) = (keeper($look), keeper($other));
	sleep 0.3;
	is(keeper($other), $idle, 'one without the extension waits for it');
	unlike(slurp_file($node->logfile, $log), qr/ERROR|database "postgres"/, 'nothing in the log but the database that is not there');
	my $missing = () = slurp_file($node->logfile, $log) =~ /FATAL:  database "nowhere" does not exist/g;
	is($missing, 1, 'which is there once, for now');
	$other->must('CREATE EXTENSION lease');
	attached($other, '6 s', 'a');
	my @keepers = keepers($other);
	attached($look, '2 s', 'boot');
	is(keeper($look), $boot, 'a session attaches, and the keeper is that of the server');
	$look->must(q{SELECT lease_renew('boot', 'me', '1500 ms')});
	sleep 1.7;
	isnt(held($look, 'boot'), '', 'it keeps leases');
	isnt(held($other, 'a'), '', 'the other, too, of an extension that came later');
	$other->must('DROP EXTENSION lease; CREATE EXTENSION lease');
	attached($other, '6 s', 'b');
	my $short = Lease::Session->connect($node, database => 'other');
	attached($short, '1 h', 'short');
	$short->quit;
	ok(eventually($other, q{SELECT lease_token('short', 'me') IS NULL}, 5), 'dropped and made again: kept');
	# Terminated: another one steps in until the server starts it again.
	$other->must('SELECT pg_terminate_backend(pid) FROM ' . $Lease::Keeper::keepers);
	$look->must("SELECT pg_terminate_backend($boot)");
	sleep 1.6;
	isnt(held($look, 'boot'), '', 'a keeper of the server is terminated: another one steps in')
	  or diag($look->must(q{SELECT name, expiry, renewed_at, session_pid, clock_timestamp() FROM dist_lock WHERE name = 'boot'}), ' ', $look->must(q{SELECT pid, datname, backend_start, state, state_change, wait_event, xact_start FROM pg_stat_activity WHERE backend_type = 'lease keeper'}));
	$look->must(q{SELECT lease_release('boot', 'me')});
	$_->quit for $other, $look;
	$log = new_log($node);
	stopped('fast', 'with keepers of the server');
	log_is_quiet($node, $log, 'with keepers of the server', qr/administrator command|exited with exit code 1/);
}

# A list that is none.
$log = new_log($node);
$node->append_conf('postgresql.conf', q{lease.keeper_databases = '"postgres'});
is($node->start(fail_ok => 1), 0, 'a list without its end: the server does not start');
like(slurp_file($node->logfile, $log), qr/invalid list of databases in "lease.keeper_databases"/, 'and says why');

Lease::Node::unhurt($node);
done_testing();
