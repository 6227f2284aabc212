# pg_upgrade of a server in use: leases that are live stay live, rights and fences stay, tokens rise.
# `make test-upgrade` runs it where both majors are installed.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../tap/lib";

use Lease::Node;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $from = '/usr/lib/postgresql/15';
my $new_bin = $ENV{BINDIR};

# A server of the new major that has nothing yet, and an old one with leases; then the old is gone.
my @initdb = ('--encoding=UTF8', '--locale=C');
my $old = PostgreSQL::Test::Cluster->new('old', install_path => $from);
$old->init(extra => \@initdb);
$old->start;
is(int($old->safe_psql('postgres', 'SHOW server_version_num') / 10000), 15, 'from PostgreSQL 15');
my $new = PostgreSQL::Test::Cluster->new('new');
$new->init(extra => \@initdb);

$old->safe_psql('postgres', q{
	CREATE SCHEMA locks;
	CREATE EXTENSION lease SCHEMA locks;
	CREATE ROLE regress_lease_job;
	CREATE ROLE regress_lease_admin;
	GRANT USAGE ON SCHEMA locks TO PUBLIC;
	GRANT EXECUTE ON FUNCTION locks.lease_break(text) TO regress_lease_admin;
	REVOKE EXECUTE ON FUNCTION locks.lease_try(text, text, interval) FROM PUBLIC;
	GRANT EXECUTE ON FUNCTION locks.lease_try(text, text, interval) TO regress_lease_job;
	CREATE TABLE work (v int);
	CREATE TRIGGER fenced BEFORE INSERT ON work FOR EACH STATEMENT EXECUTE FUNCTION locks.lease_fenced('live');
	CREATE VIEW report AS SELECT name, state FROM locks.leases;
	ALTER DATABASE postgres SET search_path = locks, public;
	ALTER DATABASE postgres SET lease.max_ttl = '30 d'});
$old->safe_psql('postgres', q{SET ROLE regress_lease_job;
	SELECT lease_try('live', 'a', '1 h'), lease_try('released', 'a', '1 h'), lease_release('released', 'a'),
		lease_try('cooling', 'a', '1 h'), lease_release('cooling', 'a', '1 h'), lease_try('purged', 'a', '1 h'), lease_release('purged', 'a')});
$old->safe_psql('postgres', q{SELECT lease_try('bound', 'a', '1 h'); SELECT lease_attach('bound', 'a'); DELETE FROM dist_lock WHERE name = 'purged'});
# The keeper lets it go with its session; here it is as if the server had been stopped in its midst.
$old->poll_query_until('postgres', q{SELECT state = 'free' FROM leases WHERE name = 'bound'}) or die 'not released';
$old->safe_psql('postgres', q{SELECT lease_try('bound', 'a', '1 h'); UPDATE dist_lock SET session_pid = 1, session_start = '2020-01-01' WHERE name = 'bound'});
my $highest = $old->safe_psql('postgres', q{SELECT greatest((SELECT max(token) FROM dist_lock), (SELECT last_value FROM dist_lock_token))});
my $rows = q{SELECT d::text FROM dist_lock d ORDER BY name};
my $as_it_was = $old->safe_psql('postgres', $rows);
my ($token) = $old->safe_psql('postgres', q{SELECT token FROM dist_lock WHERE name = 'live'});
$old->stop;

chdir ${PostgreSQL::Test::Utils::tmp_check};
command_ok(
	[ "$new_bin/pg_upgrade", '-d', $old->data_dir, '-D', $new->data_dir, '-b', "$from/bin", '-B', $new_bin, '-s', $new->host, '-p', $old->port, '-P', $new->port ],
	'pg_upgrade');
$new->start;
sub sql { return $new->safe_psql('postgres', @_) }

cmp_ok(int(sql('SHOW server_version_num') / 10000), '>=', 17, 'to a newer major');
is(sql($rows), $as_it_was, 'all rows, as they were');
is(sql(qq{SET ROLE regress_lease_job; SELECT lease_token('live', 'a'), lease_renew('live', 'a', '1 h', $token), lease_fence('live', $token) IS NOT NULL, lease_try('live', 'b', '1 h'), lease_try('cooling', 'b', '1 h')}),
	"$token|t|t|f|f", 'the holder goes on, nobody else gets in');
cmp_ok(sql("SELECT lease_token('$_', 'z') WHERE lease_try('$_', 'z', '1 h')"), '>', $highest, "the next token of '$_' is higher than any before")
  for 'released', 'purged', 'unknown';
is(sql(q{SELECT has_function_privilege('regress_lease_admin', 'lease_break(text)', 'EXECUTE'), has_function_privilege('regress_lease_admin', 'lease_try(text, text, interval)', 'EXECUTE'),
	has_function_privilege('regress_lease_job', 'lease_try(text, text, interval)', 'EXECUTE'), has_function_privilege('regress_lease_job', 'lease_purge(interval)', 'EXECUTE')}),
	't|f|t|f', 'rights that an administrator gave and took are there');
is((Lease::Node::answer($new, 'INSERT INTO work VALUES (1)'))[1], 'LEASE', 'fenced tables are fenced');
is((Lease::Node::answer($new, q{SELECT lease_try('long', 'a', '31 days')}))[1], '22023', 'settings hold');
is(sql(q{SELECT state FROM report WHERE name = 'live'}), 'held', 'views on our views are there');
# A keeper finds what was bound to a session of the old server, and lets it go.
my $session = $new->background_psql('postgres', on_error_stop => 1);
$session->query_safe(q{SELECT lease_try('own', 'me', '1 min'); SELECT lease_attach('own', 'me')});
ok($new->poll_query_until('postgres', q{SELECT state = 'free' FROM leases WHERE name = 'bound'}), 'what was bound to a session of the old server is released');
$session->quit;
sql(q{DROP VIEW report; DROP TABLE work; DROP EXTENSION lease; CREATE EXTENSION lease});

Lease::Node::unhurt($new);
$new->stop;
done_testing();
