# The examples that README and doc/ show, as they are printed there.
package Lease::Pages;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(examples pages sections text_of);

my $top = "$FindBin::Bin/../..";

sub text_of { my ($page) = @_; return slurp_file("$top/$page"); }

sub pages { return ('README.md', map { s{^\Q$top\E/}{}r } sort glob "$top/doc/*.md"); }

# Of a page: [title, text] of each section, without those inside of it. A line of a script that
# begins with # is no title.
sub sections
{
	my ($page) = @_;
	my @sections = [ '', '' ];
	my $inside = 0;

	for my $line (split /^/, text_of($page))
	{
		$inside = !$inside if $line =~ /^```/;
		if (!$inside && $line =~ /^#+ (.*)$/) { push @sections, [ $1, '' ] }
		else { $sections[-1][1] .= $line }
	}
	return @sections;
}

# The examples in a section of a page, in a language.
sub examples
{
	my ($page, $title, $language) = @_;
	my ($section) = grep { $_->[0] eq $title } sections($page);

	die "$page has no section \"$title\"" if !$section;
	return $section->[1] =~ /^```$language\n(.*?)^```$/msg;
}

1;
