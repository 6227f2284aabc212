# A standby takes over in the middle of a load. Of a synchronous one every grant and renewal that
# was answered is there, whatever the sessions said, and tokens go on rising. An asynchronous one
# that lost the tail lost the grants in it, and tokens come back until the sequence is set forward.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Pages;
use Lease::Session;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my ($set_forward) = examples('doc/reference.md', 'Failover, restore, move', 'sql');
my @settings = qw(on off local remote_write remote_apply off local on);

# A standby that the primary waits for ($synchronous), or not.
sub standby_of
{
	my ($primary, $name, $synchronous) = @_;
	$primary->backup($name);
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	$standby->start;
	$primary->safe_psql('postgres', sprintf q{ALTER SYSTEM SET synchronous_standby_names = '%s'; SELECT pg_reload_conf()}, $synchronous ? $name : '');
	$primary->poll_query_until('postgres', sprintf q{SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = '%s' AND state = 'streaming' AND sync_state = '%s'}, $name, $synchronous ? 'sync' : 'async')
	  or die "$name does not follow";
	return $standby;
}

# Nothing that the primary writes reaches the standby from here on.
sub cut_off
{
	my ($primary, $standby) = @_;
	$standby->append_conf('postgresql.conf', "primary_conninfo = ''");
	$standby->reload;
	$primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_replication') or die 'it still follows';
	return;
}

# The next thing that a session does: a new tenure, or the renewal of its last one. The answer is the
# row as it has to be found again; every third time, in a transaction of one statement, all but the
# expiry.
sub send_next
{
	my ($load) = @_;
	my $count = $load->{count}++;
	my ($name, $owner) = ("$load->{setting} $load->{number} " . int($count / 2), "owner $load->{number}");
	my $call = $count % 2 ? "lease_renew('$name', '$owner', '2 h')" : "lease_try('$name', '$owner', '1 h')";

	@$load{qw(name owner)} = ($name, $owner);
	# Told by another command, or its snapshot would not show the expiry.
	$load->{session}->send("BEGIN; SELECT $call; SELECT token, expiry, owner FROM dist_lock WHERE name = '$name'; COMMIT; SHOW synchronous_commit")
	  if $count % 3;
	$load->{session}->send("SELECT lease_token('$name', '$owner'), NULL, '$owner' WHERE $call; SHOW synchronous_commit")
	  unless $count % 3;
	return;
}

# Runs sessions of all settings: pairs of so many seconds and what is done then, while calls are under
# way. Returns what was answered: name => [token, expiry or undef, owner].
sub load
{
	my ($primary, @phases) = @_;
	my (%answered, @changed);
	my $number = 0;
	my @loads = map {
		{ session => Lease::Session->connect($primary, synchronous_commit => $_), setting => $_, number => ++$number, count => 0 }
	} @settings;
	my $collect = sub {
		my ($load) = @_;
		my @rows = @{ $load->{session}->answer->{rows} };
		return if $load->{session}->answer->{closed} || $load->{session}->answer->{state};
		my $setting = pop(@rows)->[0];
		push @changed, "$load->{setting} became $setting" if $setting ne $load->{setting};
		$answered{ $load->{name} } = pop @rows;
	};

	send_next($_) for @loads;
	while (my ($seconds, $then) = splice @phases, 0, 2)
	{
		my $until = time + $seconds;
		while (time < $until)
		{
			for my $load (grep { $_->{session}->done(0.0002) } @loads)
			{
				$collect->($load);
				send_next($load);
			}
		}
		$then->();
	}
	# What came in time counts, too.
	$collect->($_) for grep { $_->{session}->done(0.1) } @loads;
	is("@changed", '', 'the sessions\' settings were what they were afterwards');
	return \%answered;
}

# Every tenure that was answered, against the rows of the new primary.
sub all_there
{
	my ($node, $answered, $test) = @_;
	my %rows = map { my ($name, @rest) = split /\|/, $_; ($name => \@rest) }
	  split /\n/, $node->safe_psql('postgres', q{SELECT name, token, expiry, owner FROM dist_lock WHERE expiry > clock_timestamp()});
	my @lost = grep {
		my ($row, $told) = ($rows{$_}, $answered->{$_});
		!$row || $row->[0] != $told->[0] || $row->[2] ne $told->[2] || defined $told->[1] && $row->[1] lt $told->[1]
	} sort keys %$answered;

	cmp_ok(scalar keys %$answered, '>', 100, "$test: enough was answered");
	is("@lost[0 .. ($#lost < 4 ? $#lost : 4)]", '', "$test: each tenure that was answered is there");
	return;
}

sub highest { my ($answered) = @_; return (sort { $b <=> $a } map { $_->[0] } values %$answered)[0] }

sub next_token
{
	my ($node, $name) = @_;
	return $node->safe_psql('postgres', "SELECT lease_token('$name', 'next') WHERE lease_try('$name', 'next', '1 h')");
}

my $primary = Lease::Node::make('first', streaming => 1, wal_retrieve_retry_interval => '100ms');
my $seconds = $ENV{LONG} ? 10 : 1;
my $round = 0;

# The primary dies with calls under way; or, harder, its standby was cut off before, when it went on
# to answer what needs no standby.
for my $cut (0, 1, $ENV{LONG} ? map { $_ % 2 } 1 .. 6 : ())
{
	my $test = ++$round . ($cut ? ', cut off before' : ', under load');
	my $standby = standby_of($primary, "standby$round", 1);
	$primary->safe_psql('postgres', 'CREATE TABLE work (v int)') if $round == 1;
	my $cut_off = sub {
		cut_off($primary, $standby);
		$primary->safe_psql('postgres', "SET synchronous_commit = local; INSERT INTO work VALUES ($round)");
		is($primary->safe_psql('postgres', "SELECT count(*) FROM work WHERE v = $round"), 1, "$test: a write that says local is answered");
	};
	my $answered = load($primary, $seconds, $cut ? ($cut_off, 0.3) : (), sub { $primary->stop('immediate') });
	$standby->promote;
	all_there($standby, $answered, $test);
	is($standby->safe_psql('postgres', "SELECT count(*) FROM work WHERE v = $round"), 0, "$test: and is lost") if $cut;
	cmp_ok(next_token($standby, "new $round"), '>', highest($answered), "$test: the next token is higher");
	my ($name) = sort keys %$answered;
	$standby->safe_psql('postgres', "SELECT lease_break('$name')");
	cmp_ok(next_token($standby, $name), '>', highest($answered), "$test: also that of a lease which was held");
	Lease::Node::unhurt($primary);
	$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''");
	$standby->reload;
	$primary = $standby;
}

# Asynchronous. The sequence is logged 32 tokens ahead; after more than that it shows.
my $standby = standby_of($primary, 'lagging', 0);
my $kept = next_token($primary, 'kept');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
cut_off($primary, $standby);
next_token($primary, 'lost');
$primary->safe_psql('postgres', q{SELECT count(*) FROM generate_series(1, 100) g WHERE lease_try('more ' || g, 'a', '1 h')});
my $last = $primary->safe_psql('postgres', 'SELECT max(token) FROM dist_lock');
$primary->stop('immediate');
$standby->promote;
is($standby->safe_psql('postgres', q{SELECT lease_token('kept', 'next')}), $kept, 'asynchronous: what had arrived is there');
is($standby->safe_psql('postgres', q{SELECT lease_token('lost', 'next') IS NULL}), 't', 'asynchronous: a grant in the lost tail is lost');
my $again = next_token($standby, 'lost');
cmp_ok($again, '>', $kept, 'asynchronous: tokens go on from what had arrived');
cmp_ok($again, '<=', $last, 'asynchronous: and may be what was given before');
# What the documentation says to do then.
$standby->safe_psql('postgres', $set_forward);
cmp_ok(next_token($standby, 'after'), '>', $last, 'asynchronous: with the sequence set to the clock they are higher than all');

Lease::Node::unhurt($standby);
$standby->stop;
done_testing();
