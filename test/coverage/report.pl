# report.pl COVERAGE UNREACHED: reads gcovr's JSON, prints how much of each file ran, and the
# lines that did not. Fails under 95 % of all, or if a line that did not run is not named in
# UNREACHED, or if what is named there is not to be found in the source.
# UNREACHED has blocks: a reason (a line that starts with #, or several), then lines
# "file: text", which name every run of unreached lines one of which contains the text.
use strict;
use warnings;
use JSON::PP;

my $least = 95;
my ($coverage, $unreached) = @ARGV;

sub content { my ($file) = @_; local $/; open my $in, '<', $file or die "$file: $!"; return <$in> }

my @named;
for my $line (split /\n/, content($unreached))
{
	next if $line =~ /^\s*(?:#|$)/;
	my ($file, $text) = $line =~ /^(\S+?): (.*)$/ or die "$unreached: not \"file: text\": $line";
	push @named, { file => $file, text => $text, used => 0 };
}

my ($all, $run, $unnamed) = (0, 0, 0);
my @report;
for my $file (sort { $a->{file} cmp $b->{file} } @{ decode_json(content($coverage))->{files} })
{
	my $name = $file->{file};
	my @source = split /\n/, content($name);
	my %count = map { $_->{line_number} => $_->{count} } grep { !$_->{'gcovr/noncode'} } @{ $file->{lines} };
	my @missed = grep { !$count{$_} } sort { $a <=> $b } keys %count;
	push @report, sprintf("%-28s %4d lines, %5.1f %%\n", $name, scalar keys %count,
		100 * (keys(%count) - @missed) / (keys(%count) || 1));
	$all += keys %count;
	$run += keys(%count) - @missed;

	# Lines that follow each other, up to the next one that ran, belong together.
	my @runs;
	my $last;
	for my $line (@missed)
	{
		push @runs, [] unless defined $last && !grep { $count{$_} } $last + 1 .. $line - 1;
		push @{ $runs[-1] }, $line;
		$last = $line;
	}
	for my $lines (@runs)
	{
		# A statement's text goes on in lines that are not counted.
		my $end = $lines->[-1];
		$end++ while $end < @source && !exists $count{ $end + 1 } && $source[$end] =~ /\S/;
		my $text = join "\n", @source[$lines->[0] - 1 .. $end - 1];
		my @by = grep { $_->{file} eq $name && index($text, $_->{text}) >= 0 } @named;
		$_->{used}++ for @by;
		next if @by;
		$unnamed += @$lines;
		print "$name:$_: $source[$_ - 1]\n" for @$lines;
	}
}
print "\n" if $unnamed;
print @report;
my $share = 100 * $run / ($all || 1);
printf "%-28s %4d lines, %5.1f %%, at least %d %%\n", 'all', $all, $share, $least;
print "$unnamed lines above were not reached and are not named in test/coverage/unreached\n" if $unnamed;
my $lost = 0;
for my $entry (grep { !$_->{used} } @named)
{
	my $there = -e $entry->{file} && index(content($entry->{file}), $entry->{text}) >= 0;
	$lost++ unless $there;
	print "named there, but ", $there ? 'reached this time' : 'not in the source', ": $entry->{file}: $entry->{text}\n";
}
exit($share < $least || $unnamed || $lost ? 1 : 0);
