# Odd arguments in odd places, in databases of several encodings, by several sessions at once: the
# server lives, an error has an SQLSTATE that doc/reference.md names, and nothing is left behind.
# SEED plays a run again, as far as three sessions at once allow; `make test-odd` takes ten
# minutes and every encoding that the server has.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Odd;
use Lease::Queue qw(nothing_left);
use Lease::Session;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $seed = $ENV{SEED} // int rand 2**31;
srand $seed;
note "seed $seed: SEED=$seed plays it again";

# What the reference names: in the first column of its tables of errors, and in its lists.
my $reference = slurp_file("$FindBin::Bin/../../doc/reference.md");
my %named = map { $_ => 1 } $reference =~ /\b(LEASE|[0-9][0-9A-Z]{4})\b/g;
my @classes = $reference =~ /\b([0-9A-Z]{2})xxx\b/g;
cmp_ok(scalar keys %named, '>', 12, 'the reference names SQLSTATEs') or BAIL_OUT('doc/reference.md is not as this test expects');

my $node = Lease::Node::make('odd', deadlock_timeout => '10ms', jit => 'off');
my $parallel = $node->pg_version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode';
my @encodings = split /\n/, $node->safe_psql('postgres', q{SELECT e FROM generate_series(0, 41) n, pg_encoding_to_char(n) e WHERE e NOT IN ('', 'UTF8', 'SJIS', 'BIG5', 'GBK', 'UHC', 'GB18030', 'JOHAB', 'SHIFT_JIS_2004') ORDER BY n});
@encodings = map { splice @encodings, rand @encodings, 1 } 1 .. 2 unless $ENV{LONG};
unshift @encodings, 'UTF8';
my $seconds = ($ENV{LONG} ? 600 : 6) / @encodings;
my (%seen, @unnamed, @runs);

# Of an idle session: resident memory that is its process's own, and what is in the memory context
# that lasts as long as that; in kB.
sub memory
{
	my ($session) = @_;
	# What bounds the odd statements does not bound this one.
	$session->must('SET statement_timeout = 0');
	my $top = $session->must(q{SELECT total_bytes / 1024 FROM pg_backend_memory_contexts WHERE name = 'TopMemoryContext'});
	$session->must('RESET statement_timeout');
	my ($kb) = slurp_file("/proc/$session->{pid}/status") =~ /^RssAnon:\s+(\d+)/m;
	return ($kb, $top);
}

# Told at once: without a server the test comes to no orderly end.
sub server_lost
{
	diag(join "\n", "SEED=$seed: one of these ended the server", map { $_->{statement} } @runs);
	die 'the server has gone';
}

sub take_answer
{
	my ($run) = @_;
	my $answer = $run->{session}->answer;
	server_lost() if $answer->{closed};
	$seen{ $answer->{state} }++;
	return $run->{session}->must('ROLLBACK') && 1 if $answer->{transaction} ne 'I' && !$answer->{state};
	my $state = $answer->{state};
	push @unnamed, "$state: $answer->{message}\n  $run->{statement}"
	  if $state && !$named{$state} && !(grep { $state =~ /^$_/ } @classes) && !grep { $_ eq $state } @{ $run->{states} };
	$run->{session}->must('ROLLBACK') if $answer->{transaction} ne 'I';
	return;
}

sub send_next
{
	my ($run, $encoding) = @_;
	my ($statement, @states) = Lease::Odd::statement($encoding, $parallel);
	@$run{qw(statement states)} = ($statement, \@states);
	$run->{session}->send($statement);
	$run->{count}++;
	return;
}

for my $encoding (@encodings)
{
	my $database = lc "odd_$encoding";
	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE template0 ENCODING '$encoding' LOCALE 'C'");
	my $look = Lease::Session->connect($node, database => $database);
	$look->must('CREATE EXTENSION lease');
	$look->must($Lease::Odd::setup);
	@runs = map { { session => Lease::Session->connect($node, database => $database, client_min_messages => 'error', statement_timeout => '80ms', lock_timeout => '15ms'), count => 0 } } 1 .. 3;

	my $until = time + $seconds;
	my $half = time + $seconds / 2;
	my $done = 0;
	send_next($_, $encoding) for @runs;
	while (time < $until)
	{
		for my $run (grep { $_->{session}->done(0.0002) } @runs)
		{
			take_answer($run);
			$run->{at_half} //= [ memory($run->{session}) ] if time > $half;
			$done++;
			send_next($run, $encoding);
		}
	}
	take_answer($_) for @runs;
	# Catalogs that a session looks up for the first time take some; so does what the allocator keeps.
	for my $run (@runs)
	{
		my ($kb, $top) = memory($run->{session});
		cmp_ok($kb - $run->{at_half}[0], '<', 6000, "$encoding: a session takes no more memory ($done statements)");
		cmp_ok($top - $run->{at_half}[1], '<', 64, "$encoding: and leaves nothing for good");
	}
	for my $run (@runs) { $run->{session}->must($_) for 'SET statement_timeout = 0', 'DISCARD ALL' }
	nothing_left($look, $encoding);
	# The names that nothing forbids.
	$runs[0]{session}->must('SET statement_timeout = 0; SET lock_timeout = 0');
	$look->must("SELECT lease_break('n1')");
	is($runs[0]{session}->must(q{SELECT lease_try('n1', 'last', '1 h'); SELECT lease_renew('n1', 'last', '1 h'), lease_fence('n1', lease_token('n1', 'last')), lease_release('n1', 'last')}),
		"t\nt||t", "$encoding: then all is well");
	$_->quit for $look, map { $_->{session} } @runs;
}
is(join("\n", @unnamed[0 .. ($#unnamed < 9 ? $#unnamed : 9)]), '', 'every error has an SQLSTATE that the reference names');
note join ' ', map { ($_ || 'no error') . ": $seen{$_}" } sort keys %seen;

Lease::Node::unhurt($node);
$node->stop;
done_testing();
