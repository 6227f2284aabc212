# The owner of a database who is no superuser: cannot make the extension (it is not trusted, for
# reasons that doc/design.md gives), works with one that is there like everybody, and runs it as far
# as a superuser allows, up to dump and restore.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('owner');
$node->safe_psql('postgres', q{
	CREATE ROLE regress_lease_owner LOGIN CREATEDB;
	CREATE ROLE regress_lease_user LOGIN;
	CREATE DATABASE app OWNER regress_lease_owner;
	CREATE DATABASE copy OWNER regress_lease_owner});
sub as { return Lease::Session->connect($node, database => 'app', role => "regress_lease_$_[0]") }
my $admin = Lease::Session->connect($node, database => 'app');
my $owner = as('owner');

my $refused = $owner->send('CREATE EXTENSION lease')->answer;
is("$refused->{state} $refused->{message}", '42501 permission denied to create extension "lease"', 'the owner of a database may not make it');
is($admin->must(q{SELECT count(*) FROM pg_class WHERE relname LIKE 'dist_lock%'}), 0, 'and nothing of it is there');

$admin->must('CREATE EXTENSION lease');
is($owner->query(q{SELECT lease_try('job', 'a', '1 h'), lease_token('job', 'a') > 0, lease_release('job', 'a')}), 't|t|t', 'made by a superuser: the owner uses it');
for my $statement (q{SELECT lease_break('job')}, q{SELECT lease_purge('0')}, 'TABLE dist_lock', 'DROP EXTENSION lease', 'ALTER EXTENSION lease UPDATE',
	q{CREATE INDEX ON dist_lock (lower(name))}, q{ALTER TABLE dist_lock ADD CHECK (true)})
{
	is($owner->query($statement), '42501', "not his: $statement");
}
is($owner->query('REVOKE EXECUTE ON FUNCTION lease_try(text, text, interval) FROM PUBLIC; SELECT has_function_privilege(\'regress_lease_user\', \'lease_try(text, text, interval)\', \'EXECUTE\')'),
	't', 'nor are the rights of others: his REVOKE does nothing');

# What there is to give him
my ($grants) = slurp_file("$FindBin::Bin/../../doc/reference.md") =~ /^```sql\n(GRANT .*?dist_lock.*?)^```/ms;
ok($grants, 'doc/reference.md shows what to give him') or BAIL_OUT('no grants');
$admin->must($grants =~ s/\bapp_owner\b/regress_lease_owner/gr);
my $user = as('user');
is($user->query(q{SELECT lease_try('stuck', 'b', '1 h'), lease_try('kept', 'b', '1 h')}), 't|t', 'somebody holds leases');
is($owner->query(q{SELECT lease_break('stuck'), lease_purge('0')}), 't|2', 'he breaks and purges');
is($owner->query(q{SELECT name FROM dist_lock}), 'kept', 'and reads the table');
is($owner->query(q{CREATE INDEX ON dist_lock (lower(name))}), '42501', 'what runs as the table\'s owner is still not his');

# Dump and restore by the owner; the extension is made by a superuser before.
my @as_owner = ('-h', $node->host, '-p', $node->port, '-U', 'regress_lease_owner');
my $file = $node->basedir . '/app.dump';
command_ok([ 'pg_dump', @as_owner, '-Fc', '-f', $file, 'app' ], 'he dumps his database');
$node->safe_psql('copy', 'CREATE EXTENSION lease;' . $grants =~ s/\bapp_owner\b/regress_lease_owner/gr);
command_ok([ 'pg_restore', @as_owner, '-d', 'copy', '-t', 'dist_lock', '--data-only', $file ], 'he restores the leases into another');
is($node->safe_psql('copy', q{SELECT owner FROM leases WHERE state = 'held'}), 'b', 'which are held there');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
