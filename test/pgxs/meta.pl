# meta.pl: META.json keeps to PGXN's rules (https://pgxn.org/meta/spec.txt, as far as they touch
# us), names files that are there, and says what lease.control and debian/ say. Prints
# what does not hold.
use strict;
use warnings;
use JSON::PP;

my $bad = 0;

sub complain { print "META.json: @_\n"; $bad = 1; return }

sub slurp
{
	my ($file) = @_;
	open my $in, '<', $file or die "$file: $!\n";
	local $/;
	return scalar <$in>;
}

my $meta = decode_json(slurp('META.json'));
my ($control) = slurp('lease.control') =~ /^default_version = '(.*)'/m;
my $text = sub { defined $_[0] && !ref $_[0] && length $_[0] };
my $version = qr/^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z-]+)?$/;
my %known = map { $_ => 1 } qw(abstract description generated_by license maintainer meta-spec name
  no_index prereqs provides release_status resources tags version);

for (qw(name version abstract maintainer license provides meta-spec))
{
	complain("\"$_\" is missing") unless $meta->{$_};
}
for (keys %$meta)
{
	complain("\"$_\" is no key of the specification (others begin with x_)") unless $known{$_} || /^x_/i;
}
$text->($meta->{$_}) or complain("\"$_\" has to be a text") for qw(name version abstract description);
complain('a name has two characters or more, no blank, slash or control character')
  unless $meta->{name} =~ m{^[^\s/\\[:cntrl:]]{2,}$};
complain("version $meta->{version} is not semantic") unless $meta->{version} =~ $version;
complain("version $meta->{version} does not begin with $control, of lease.control")
  unless index($meta->{version}, "$control.") == 0;
complain("version $meta->{version} is not the one in debian/changelog")
  unless slurp('debian/changelog') =~ /^lease \(\Q$meta->{version}\E-/;
complain("version of the specification is not 1.0.x") unless $meta->{'meta-spec'}{version} =~ /^1\.0\.\d+$/;
complain("license \"$meta->{license}\" is not the one in LICENSE")
  unless $meta->{license} eq 'postgresql' && slurp('LICENSE') =~ /^PostgreSQL License/i;
# An address of .invalid reaches nobody: right as long as there is no mailbox, and nothing to release.
for my $file (qw(debian/control.in debian/control debian/changelog))
{
	complain("maintainer \"$meta->{maintainer}\" is not the one in $file")
	  unless slurp($file) =~ /^(?:Maintainer:| --) \Q$meta->{maintainer}\E(?:  |$)/m;
}
complain('a stable release has a maintainer who can be reached')
  if $meta->{release_status} eq 'stable' && $meta->{maintainer} =~ /\.(?:invalid|example)>$/;
complain('release_status') unless $meta->{release_status} =~ /^(?:stable|testing|unstable)$/;
complain('a stable release has a version without suffix')
  if $meta->{release_status} eq 'stable' && $meta->{version} =~ /-/;
for (@{ $meta->{tags} })
{
	complain("tag \"$_\"") unless $text->($_) && length($_) <= 255 && m{^[^/\\[:cntrl:]]+$};
}
complain('it has to provide lease alone') unless join(' ', keys %{ $meta->{provides} }) eq 'lease';
for my $provided (values %{ $meta->{provides} })
{
	complain('another version is provided') unless $provided->{version} eq $meta->{version};
	complain("no script leads to $control") unless $provided->{file} =~ m{^sql/lease--(?:[\d.]+--)?\Q$control\E\.sql$};
	-e or complain("there is no $_") for @$provided{qw(file docfile)};
}
for my $phase (keys %{ $meta->{prereqs} })
{
	complain("phase \"$phase\"") unless $phase =~ /^(?:configure|build|test|runtime|develop)$/;
	for my $relation (keys %{ $meta->{prereqs}{$phase} })
	{
		complain("relation \"$relation\"") unless $relation =~ /^(?:requires|recommends|suggests|conflicts)$/;
		$_ =~ $version or complain("version \"$_\" of what it needs")
		  for values %{ $meta->{prereqs}{$phase}{$relation} };
	}
}
exit $bad;
