# sql.pl FILE...: every function and operator in the SQL of these files is named with its
# schema. Whole files if they are SQL scripts; of C++, the string literals that hold SQL.
# Why: what search_path finds first may be somebody else's, with better fitting arguments.
# Types and tables are not looked at where the server finds pg_catalog or our own first (in
# an install script); in C++ a table has to be %s, which qualified_name() fills in.
use strict;
use warnings;

# Words that stand before a parenthesis and call nothing.
my %word = map { $_ => 1 } qw(
  all and any array as by case check coalesce conflict else exists filter from greatest group
  grouping having in index insert into is join key lateral least not null nullif on or order over
  partition primary references returns row select set some table then unique using values
  when where with within);
my $bad = 0;

sub complain
{
	my ($file, $what, $sql) = @_;
	$sql =~ s/\s+/ /g;
	print "$file: $what in: ", substr($sql, 0, 120), "\n";
	$bad++;
}

# One statement, or a part of one, without comments.
sub check_sql
{
	my ($file, $sql, $is_script) = @_;
	my $text = $sql;
	$text =~ s/'(?:[^']|'')*'/''/g;                       # literals
	$text =~ s/OPERATOR\(pg_catalog\.[^)]*\)/ /g;         # operators that are named
	return if $is_script && $text =~ /^\s*(?:COMMENT|GRANT|REVOKE)\b/;
	my $own = '';

	# What is defined here is not called, and its parameters are no calls either.
	$text =~ s/\bCREATE\s+(?:FUNCTION|PROCEDURE|TABLE|VIEW|SEQUENCE|INDEX|TRIGGER)\s+\w+(?:\s+ON\s+\w+)?//g;
	$text =~ s/\bWITH\s*\([^)]*=[^)]*\)//g;               # storage parameters
	$text =~ s/\bINSERT\s+INTO\s+%s\s*\(//g;
	while ($text =~ /([\w.%]+)\s*\(/g)
	{
		my $name = $1;
		next if $word{ lc $name } || $name =~ /^pg_catalog\.\w+$/ || $name =~ /^\d/;
		next if $is_script && $name =~ /^lease_\w+$/;     # our own, in our own schema
		complain($file, "function $name without schema", $sql);
	}
	while ($text =~ m{(?<![\w.])(<=|>=|<>|!=|\|\||[-+*/<>=~@#&|^!]+)}g)
	{
		my ($op, $at) = ($1, pos $text);
		next if $op eq '*' && substr($text, 0, $at) =~ /(?:SELECT|\()\s*\*$/i;
		complain($file, "operator $op without schema", $sql);
	}
	complain($file, 'LIKE, IN or BETWEEN (operators by search_path)', $sql)
	  if $text =~ /\b(?:LIKE|ILIKE|BETWEEN|IN\s*\()\b/i;
	return if $is_script;
	while ($text =~ /\b(?:FROM|JOIN|INTO|UPDATE|LOCK\s+TABLE|CALL)\s+([\w.%\$]+)/g)
	{
		my $name = $1;
		complain($file, "table $name without schema", $sql)
		  unless $name =~ /^(?:%s|pg_catalog\.\w+)$/ || lc $name eq 'only' || lc $name eq 'set';
	}
	complain($file, 'cast without schema', $sql) if $text =~ /::(?!pg_catalog\.)/;
}

for my $file (@ARGV)
{
	open my $in, '<', $file or die "$file: $!";
	local $/;
	my $text = <$in>;
	close $in;
	if ($file =~ /\.sql$/)
	{
		$text =~ s/^\\.*$//mg;
		$text =~ s/--.*$//mg;
		check_sql($file, $_, 1) for split /;\s*$/m, $text;
		$bad++, print "$file: CREATE OR REPLACE or IF NOT EXISTS adopts what others made\n"
		  if $text =~ /\bOR\s+REPLACE\b|\bIF\s+NOT\s+EXISTS\b/i;
		next;
	}
	$text =~ s{//.*$}{}mg;
	while ($text =~ /((?:"(?:[^"\\]|\\.)*"\s*)+)/g)
	{
		my $sql = $1;
		$sql =~ s/"\s*"//g;
		$sql =~ s/^"|"\s*$//g;
		next unless $sql =~ /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CALL|LOCK|WITH|SET|MERGE|CREATE|ALTER|DROP|GRANT|TRUNCATE|COPY|EXECUTE)\s/;
		check_sql($file, $sql, 0);
	}
}
print "$bad in all\n" if $bad;
exit($bad ? 1 : 0);
