# The way to the next version: files are replaced, then a database is updated, while leases are
# held, waited for and bound by sessions that have the old library and keep it. Within one major
# version everything goes on, in any order; over a major, one error says what to do.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Keeper;
use Lease::Queue;
use PostgreSQL::Test::Utils;
use Test::More;

my $repository = "$FindBin::Bin/../..";
my $places = slurp_file($ENV{TEMP_CONFIG});
plan skip_all => 'THIS SERVER CANNOT LOAD AN EXTENSION FROM ELSEWHERE: UPGRADES ARE NOT TESTED' unless $places;

# Files of our own, which the server finds instead of the others.
my $dir = PostgreSQL::Test::Utils::tempdir();
my $files = "$dir/files";
my $tree = "$dir/tree";
system_or_bail('cp', '-a', $ENV{LEASE_DEST}, $files);
system_or_bail('cp', '-a', $repository, $tree);
$places =~ s/\Q$ENV{LEASE_DEST}\E/$files/g;
my $node = Lease::Node::make('upgrade', $places =~ /^(\w+) = '(.*)'$/mg);

# As a package does it: the files of that version replace those of the one before.
sub install_version
{
	my ($version) = @_;
	my $control = slurp_file("$tree/lease.control") =~ s/^default_version = '.*'/default_version = '$version'/mr;
	unlink "$tree/lease.control";
	append_to_file("$tree/lease.control", $control);
	system_or_bail('make', '-s', '-j2', '-C', $tree, "PG_CONFIG=$ENV{PG_CONFIG}", "DESTDIR=$files", 'LEASECTL=', 'install');
	return;
}

sub connected { return Lease::Session->connect($node, @_) }

# The objects that the extension has in one of these databases only.
my $objects = slurp_file("$repository/test/upgrade/objects.sql");
sub differences
{
	my %count;
	for my $database (@_)
	{
		$count{$_}++ for split /\n(?=\w+(?: \w+)* \| )/, $node->safe_psql($database, $objects);
	}
	return join "\n", grep { $count{$_} == 1 } sort keys %count;
}

# Every kind of call: who holds 'held' goes on, others do not get it, and a lease comes and goes.
sub calls_work
{
	my ($session, $test) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $token = $session->must(q{SELECT lease_token('held', 'me')});

	is($session->query(qq{SELECT lease_try('held', 'me', '1 h'), lease_renew('held', 'me', '1 h', $token), lease_renew_all('{held}', 'me', '1 h'),
			lease_try('held', 'other', '1 h'), lease_try_any('{held,$test}', 'you', '1 h'), lease_token('$test', 'you') > $token;
			BEGIN; SELECT lease_fence('held', $token); COMMIT;
			CALL lease_acquire('$test', 'you', '1 h'); CALL lease_watch('$test', 0, '0');
			SELECT lease_release('$test', 'you', '0'), state, waiters FROM leases WHERE name = 'held'}) =~ s/^\d+$/token/mgr,
		"t|t|{held}|f|$test|t\n\ntoken\ntoken\nt|held|1", "$test: all calls");
	return;
}

# A database at work
my $look = connected();
$look->must(q{CREATE ROLE regress_lease_job;
	CREATE ROLE regress_lease_operator;
	REVOKE EXECUTE ON FUNCTION lease_try(text, text, interval) FROM PUBLIC;
	GRANT EXECUTE ON FUNCTION lease_try(text, text, interval) TO regress_lease_job;
	GRANT EXECUTE ON FUNCTION lease_break(text) TO regress_lease_operator});
my ($old, $bound, $waiter) = map { connected() } 1 .. 3;
$old->must(q{PREPARE renew AS SELECT lease_renew('held', 'me', '1 h')});
$old->must(q{SELECT lease_try('held', 'me', '1 h'), lease_try('cooling', 'me', '1 h'), lease_release('cooling', 'me', '1 h')});
attached($bound, '1500 ms', 'bound');
acquire($waiter, 'held', 'waiter', '1 h');
asleep($look, $waiter);
calls_work($old, '1.0');

# The files are 1.1's, and the database is not updated yet.
system_or_bail('cp', "$repository/test/upgrade/answer.cpp", "$tree/src/");
system_or_bail('cp', "$repository/test/upgrade/lease--1.0--1.1.sql", "$tree/sql/");
install_version('1.1');
my $new = connected();
calls_work($new, 'new library and old script');
calls_work($old, 'old library beside a newer one');
is($new->query('SELECT lease_answer()'), '42883', 'what is new in 1.1 is not there before the update');

# Updated
my $rows = q{SELECT name, owner, token, expiry > now(), granted_to, acquired_at, session_pid, takeovers, last_owner, last_end FROM dist_lock WHERE name IN ('bound', 'cooling', 'held') ORDER BY name};
my $before = $look->must($rows);
is($look->query('ALTER EXTENSION lease UPDATE; SELECT extversion FROM pg_extension WHERE extname = \'lease\''), '1.1', 'ALTER EXTENSION lease UPDATE');
is($look->must($rows), $before, 'every tenure goes on, with its token');
is($old->query('EXECUTE renew'), 't', 'a plan from before');
calls_work($old, 'old library and new script');
calls_work($new, '1.1');
is($new->query('SELECT lease_answer(), (SELECT note FROM lease_notes WHERE name = \'held\')'), '42|none', 'what is new in 1.1 is there');
is($old->query('SELECT lease_answer()'), '42883', 'but not in a session that has the old library');
is($look->must(q{SELECT has_function_privilege('regress_lease_job', 'lease_try(text, text, interval)', 'EXECUTE'), has_function_privilege('regress_lease_operator', 'lease_try(text, text, interval)', 'EXECUTE'),
		has_function_privilege('regress_lease_operator', 'lease_break(text)', 'EXECUTE'), has_function_privilege('regress_lease_job', 'lease_break(text)', 'EXECUTE')}),
	't|f|t|f', 'rights that an administrator gave and took are kept');
my $renewed = $look->must(q{SELECT renewed_at FROM dist_lock WHERE name = 'bound'});
ok(eventually($look, qq{SELECT renewed_at > '$renewed' AND takeovers = 0 FROM dist_lock WHERE name = 'bound'}, 10), 'the keeper goes on renewing what is bound');
$old->must(q{SELECT lease_release('held', 'me')});
like($waiter->got, qr/^\d+$/, 'who queued before the update is granted after it');
$waiter->must(q{SELECT lease_release('held', 'waiter')});
$bound->quit;
ok(eventually($look, q{SELECT state = 'free' AND last_end = 'released' FROM leases WHERE name = 'bound'}, 10), 'what was bound is released at the end of its session');

# Updated or new, the same
$node->safe_psql('postgres', 'CREATE DATABASE fresh');
$node->safe_psql('fresh', 'CREATE EXTENSION lease');
my $administrator = qr/^function \| lease_(?:try|break)\(/;
is(join("\n", grep { !/$administrator/ } split /^/, differences('postgres', 'fresh')),
	'', 'an updated database has the same objects as a new one: functions, columns, rights, comments');
$node->safe_psql('fresh', 'COMMENT ON COLUMN dist_lock.note IS NULL; GRANT EXECUTE ON FUNCTION lease_answer() TO PUBLIC');
is(scalar(() = differences('postgres', 'fresh') =~ /^column \| .* \| note |^function \| lease_answer/mg), 4, 'a comment or a right that is missing would be seen');

# Another major version
append_to_file("$tree/sql/lease--1.1--2.0.sql", "ALTER TABLE dist_lock ADD COLUMN era integer;\n");
install_version('2.0');
my $newest = connected();
my $call = q{SELECT lease_try('major', 'me', '1 h')};
my $refused = sub {
	my ($session, $script, $library, $test) = @_;
	my $answer = $session->send($call)->answer;
	is("$answer->{state} $answer->{message}", qq{55000 extension "lease" is version $script in this database, but its library is version $library}, $test);
};
$refused->($newest, '1.1', '2.0', 'whoever forgot to update the database is told');
is($old->query($call), 't', 'sessions from before do not care');
$look->must('ALTER EXTENSION lease UPDATE');
is($newest->query($call), 't', 'updated: it works, in the same session');
$refused->($old, '2.0', '1.0', 'a session that kept the old library is told');
$refused->($new, '2.0', '1.1', 'one with the version between, too');
is(connected()->query($call), 't', 'a new session works');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
