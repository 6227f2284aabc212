# prove.pl COUNTS FILE...: runs tests as prove does, and writes to the file COUNTS
# "passed failed" over all their assertions, then the tests that failed, a line each.
# A test that dies, or does not keep to its plan, has at least one failure.
use strict;
use warnings;
use TAP::Harness;

my ($counts, @files) = @ARGV;

# A signal to us goes to all that we started.
setpgrp(0, 0);
$SIG{TERM} = sub { $SIG{TERM} = 'IGNORE'; kill TERM => -$$; exit 143; };

my $aggregate = TAP::Harness->new({ timer => 1, failures => 1, jobs => $ENV{JOBS} // 2 })->runtests(@files);

my $failed = 0;
my @bad;
for my $name ($aggregate->descriptions)
{
	my ($parser) = $aggregate->parsers($name);
	next unless $parser->has_problems;
	push @bad, $name;
	$failed += scalar($parser->failed) || 1;
}

open my $out, '>', $counts or die "$counts: $!";
print $out "$_\n" for scalar($aggregate->passed) . " $failed", @bad;
close $out or die "$counts: $!";
exit($failed ? 1 : 0);
