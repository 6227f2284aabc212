# What doc/monitoring.md sets up, with the real programs: the exporter gives these figures for what goes
# on in the server, Prometheus takes them in, its alerts come, and the dashboard's queries have answers.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../tap/lib";

use HTTP::Tiny;
use JSON::PP;
use Lease::Clients;
use Lease::Node;
use Lease::Pages;
use Lease::Queue;
use Lease::Session;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

for my $program (qw(prometheus-postgres-exporter prometheus promtool))
{
	plan skip_all => "!!! $program CANNOT BE HAD HERE" if !Lease::Clients::works($program, '--version');
}

my $monitoring = "$FindBin::Bin/../../monitoring";
my $page = text_of('doc/monitoring.md');
my $node = Lease::Node::make('monitoring', max_prepared_transactions => 1);
my $look = Lease::Session->connect($node);
my %url = map { $_ => '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port() } 'exporter', 'prometheus';

sub block { my ($language) = @_; my ($block) = examples('doc/monitoring.md', 'Set up', $language); return $block; }

sub get { my ($path) = @_; return HTTP::Tiny->new(timeout => 10)->get("http://$path"); }

# A program in the background; what it says goes to a file.
sub background
{
	my ($name, @command) = @_;
	my $log = $node->basedir . "/$name.log";
	return IPC::Run::start(\@command, '<', \undef, '>', $log, '2>&1');
}

# An answer of Prometheus.
sub ask
{
	my ($what, %parameters) = @_;
	my $query = HTTP::Tiny->new->www_form_urlencode(\%parameters);
	return decode_json(get("$url{prometheus}/api/v1/$what?$query")->{content})->{data};
}

sub until_true
{
	my ($condition) = @_;
	my $until = time + 30;
	while (!$condition->())
	{
		return 0 if time > $until;
		sleep 0.1;
	}
	return 1;
}

# The alert rules and their tests
is(system("promtool check rules --lint=all --lint-fatal $monitoring/alerts.yml >/dev/null"), 0, 'promtool finds nothing wrong with the rules');
is(system("cd $monitoring && promtool test rules alerts_test.yml >&2"), 0, 'each alert comes when it should');
my @alerts = slurp_file("$monitoring/alerts.yml") =~ /- alert: (\w+)/g;
my $tests = slurp_file("$monitoring/alerts_test.yml");
is_deeply([ grep { $tests !~ /alertname: $_\n\s+exp_alerts:\n/ } @alerts ], [], 'all of them have a test');
is_deeply([ grep { $page !~ /`$_`/ } @alerts ], [], 'and a line in the page');

# The exporter, as the page starts it
$look->must($_) for grep { /\w/ } split /;\n/, block('sql');
my $start = block('sh');
my $connection = join ' ', 'host=' . $node->host, 'port=' . $node->port, 'dbname=postgres', 'user=monitor';
is($start =~ s/^DATA_SOURCE_NAME='[^']*'/DATA_SOURCE_NAME='$connection'/, 1, 'the page says where the database is');
is($start =~ s{=monitoring/}{=$monitoring/}, 1, 'and where the queries are');
$start =~ s/\n\z/ --web.listen-address=$url{exporter}\n/;
my $exporter = background('exporter', 'sh', '-c', "exec env $start");

# What goes on
my @sessions = map { Lease::Session->connect($node) } 1 .. 4;
$look->must(q{SELECT 1/lease_try('steady', 'me', '10 min')::int, 1/lease_renew('steady', 'me', '10 min')::int});
$look->must(q{SELECT 1/lease_try('again', 'me', '1 h')::int, 1/lease_release('again', 'me')::int}) for 1 .. 3;
$look->must(q{BEGIN});
$look->must(q{SELECT lease_try('left behind', 'me', '1 h')});
$look->must(q{PREPARE TRANSACTION 'left behind'});
my $odd = qq{"odd"\n\\\x{f6}};
utf8::encode(my $odd_bytes = $odd);
$look->must("SELECT 1/lease_try('$odd_bytes', 'me', '1 h')::int");
$look->must(q{SELECT 1/lease_try('died', 'me', '1 ms')::int, 1/lease_try('gone', 'me', '1 ms')::int});
acquire($sessions[$_], 'steady', "waiter $_") for 0, 1;
$sessions[2]->must(q{BEGIN});
$sessions[2]->must(q{SELECT lease_fence('steady', lease_token('steady', 'me'))});
$sessions[3]->must(q{BEGIN});
$sessions[3]->must(q{SELECT lease_try('not yet', 'me', '1 h')});
queued($look, 2);
sleep 0.2;

my %metric;

# Reads the exporter's page.
sub scrape
{
	my $answer = get("$url{exporter}/metrics");
	return 0 if !$answer->{success};
	%metric = map { /^(lease_\w+)\{(.*)\} (\S+)$/ ? labelled($1, $2, $3) : () } split /\n/, $answer->{content};
	return scalar keys %metric;
}

# name{label} => value
sub labelled { my ($name, $labels, $value) = @_; my ($label) = $labels =~ /(?:name|kind)="((?:[^"\\]|\\.)*)"/; return ("$name\{$label\}" => $value); }

ok(until_true(\&scrape), 'the exporter answers, and has figures of leases');
my %exact = (
	'lease_held{\\"odd\\"\\n\\\\' . "\xc3\xb6" . '}' => 1,
	'lease_held{steady}' => 1, 'lease_held{again}' => 0, 'lease_held{died}' => 0,
	'lease_expired{steady}' => 0, 'lease_expired{again}' => 0, 'lease_expired{died}' => 1,
	'lease_waiters{steady}' => 2, 'lease_waiters{again}' => 0,
	'lease_acquired_total{steady}' => 1, 'lease_acquired_total{again}' => 3,
	'lease_lost_total{steady}' => 0, 'lease_lost_total{again}' => 0, 'lease_lost_total{died}' => 0,
	'lease_activity_sessions{acquire}' => 2, 'lease_activity_sessions{watch}' => 0,
	'lease_activity_sessions{fence}' => 1, 'lease_activity_sessions{busy}' => 2,
	'lease_activity_longest_seconds{watch}' => 0,
	'lease_renewal_ttl_seconds{steady}' => 600);
is_deeply({ map { $_ => $metric{$_} } keys %exact }, \%exact, 'these figures');
$look->must(q{COMMIT PREPARED 'left behind'});
for my $kind (qw(acquire fence busy))
{
	my $seconds = $metric{"lease_activity_longest_seconds{$kind}"};
	ok($seconds >= 0.2 && $seconds < 60, "longest $kind: since it began") or diag("$kind: $seconds");
}
my $margin = $metric{'lease_renewal_margin_seconds{steady}'};
ok($margin > 500 && $margin < 600, 'smallest margin: what was left of ten minutes') or diag($margin);
is_deeply([ grep { !defined $page || $page !~ /`$_`/ } keys %{ { map { s/\{.*//r => 1 } keys %metric } } ], [], 'the page has a line for each of the figures');

# A name that is no text, which SQL_ASCII takes, hides no other; a prepared transaction is seen alone, too.
$node->safe_psql('postgres', q{CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'});
$node->safe_psql('bytes', qq{CREATE EXTENSION lease;
	SELECT lease_try(E'bad\\377', 'me', '1 h'), lease_try('good', 'me', '1 h');
	BEGIN; SELECT lease_try('left behind', 'me', '1 h'); PREPARE TRANSACTION 'left behind';});
{
	local $ENV{PGCLIENTENCODING} = 'UTF8';
	my ($names, undef, $kinds) = map { $node->safe_psql('bytes', $_, extra_params => [ '-U', 'monitor' ]) }
	  slurp_file("$monitoring/postgres_exporter.yml") =~ /query: \|\n(.*?)\n  metrics/sg;
	is(join(' ', sort map { s/\|.*//r } split /\n/, $names), 'bad\377 good', 'names that are no text');
	my ($busy) = $kinds =~ /^busy\|1\|(.*)$/m;
	cmp_ok($busy // 0, '>', 0, 'a prepared transaction has been open for some time');
}
$node->safe_psql('bytes', q{ROLLBACK PREPARED 'left behind'});

# The extension in a schema of its own
my (undef, $elsewhere) = examples('doc/monitoring.md', 'Set up', 'sql');
$node->safe_psql('postgres', 'CREATE DATABASE jobs');
$node->safe_psql('jobs', "CREATE SCHEMA thatschema; CREATE EXTENSION lease SCHEMA thatschema; SELECT thatschema.lease_try('there', 'me', '1 h'); $elsewhere");
is($node->safe_psql('jobs', 'SELECT name FROM leases', extra_params => [ '-U', 'monitor' ]), 'there', 'in another schema: the role finds it');

# Prometheus, as the page sets it up
my $config = block('yaml');
is($config =~ s/localhost:9187/$url{exporter}/, 1, 'Prometheus looks where the exporter is');
is($config =~ s{- monitoring/}{- $monitoring/}, 1, 'and has the rules');
append_to_file($node->basedir . '/prometheus.yml', "global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}\n$config");
my $prometheus = background('prometheus', 'prometheus', '--log.level=warn', "--web.listen-address=$url{prometheus}",
	'--config.file=' . $node->basedir . '/prometheus.yml', '--storage.tsdb.path=' . $node->basedir . '/tsdb');
my $lost = sub { my ($series) = @_; return eval { ask('query', query => $series)->{result}[0]{value}[1] } // '' };
ok(until_true(sub { $lost->('lease_lost_total{name="died"}') eq '0' }), 'Prometheus takes the figures in');
$look->must(q{SELECT 1/lease_try('died', 'heir', '1 h')::int});
my $firing = sub { return join ' ', sort map { "$_->{labels}{alertname}($_->{labels}{name})" } grep { $_->{state} eq 'firing' } @{ ask('alerts')->{alerts} } };
ok(until_true(sub { $firing->() eq 'LeaseLost(died)' }), 'a takeover: the alert comes, and no other') or diag($firing->());

# Every query of rules and dashboard
my $rules = ask('rules')->{groups}[0]{rules};
is(scalar(grep { $_->{health} eq 'ok' } @$rules), scalar @alerts, 'all rules are evaluated');
my $dashboard = decode_json(slurp_file("$monitoring/grafana.json"));
my %ids = map { $_->{id} => 1 } @{ $dashboard->{panels} };
is(keys %ids, scalar @{ $dashboard->{panels} }, 'dashboard: every panel has its own number');
for my $panel (@{ $dashboard->{panels} })
{
	for my $target (@{ $panel->{targets} })
	{
		my $query = $target->{expr} =~ s/\$name/.*/gr =~ s/\$__rate_interval/10s/r;
		# What is made of two points is there when there are two.
		ok(until_true(sub { my $data = ask('query', query => $query); $data && @{ $data->{result} } }), "dashboard: $panel->{title}")
		  or diag($query);
	}
}

$_->kill_kill for $prometheus, $exporter;
$_->quit for @sessions;
Lease::Node::unhurt($node);
$node->stop;
done_testing();
