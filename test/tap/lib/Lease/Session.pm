# One session of a server, without a process of its own: a question can be sent
# now and its answer fetched later, a hundred sessions cost a hundred sockets, and
# a client can vanish without a farewell. Speaks protocol 3, text format, no
# authentication.
package Lease::Session;

use strict;
use warnings;

use IO::Select;
use IO::Socket::UNIX;
use Time::HiRes qw(time);

our $patience = 60;    # seconds until a test gives an answer up

# connect($node, database => ..., setting => value, ...)
sub connect
{
	my ($class, $node, %settings) = @_;
	my $database = delete $settings{database} // 'postgres';
	my $self = bless {
		socket => IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port)
		  // die("no connection: $!"),
		node  => $node,
		input => '',
	}, $class;
	my $options = join ' ', map { my $v = $settings{$_}; $v =~ s/([ \\])/\\$1/g; "-c $_=$v" } sort keys %settings;
	my $user = $ENV{PGUSER} // getpwuid($>);

	my $startup = pack('N', 196608)
	  . join('', map { "$_\0" } user => $user, database => $database, options => $options) . "\0";
	$self->{socket}->syswrite(pack('N', 4 + length $startup) . $startup);
	$self->{waits} = time;
	my $answer = $self->answer;
	die "no session: $answer->{message}" if $answer->{state};
	return $self;
}

sub _message
{
	my ($type, $body) = @_;
	return $type . pack('N', 4 + length $body) . $body;
}

sub _send
{
	my ($self, $bytes) = @_;
	local $SIG{PIPE} = 'IGNORE';
	$self->{waits} = time;
	$self->{pending} = undef;
	$self->{socket}->syswrite($bytes);
	return $self;
}

# Sends a statement, or several in one message, and does not wait.
sub send
{
	my ($self, $sql) = @_;
	return $self->_send(_message(Q => "$sql\0"));
}

# Sends statements with parameters, [sql, value, ...], one after the other and
# one Sync at the end: a pipeline if there are several.
sub send_pipeline
{
	my ($self, @statements) = @_;
	my $bytes = '';

	for my $statement (@statements)
	{
		my ($sql, @values) = @$statement;
		my $rows = ref $sql ? $sql->{rows} : 0;
		$sql = $sql->{sql} if ref $sql;
		$bytes .= _message(P => "\0$sql\0" . pack('n', 0));
		my $portal = $rows ? 'p' : '';
		$bytes .= _message(B => "$portal\0\0" . pack('nn', 0, scalar @values)
			  . join('', map { defined $_ ? pack('N/a*', $_) : pack('N', 0xffffffff) } @values)
			  . pack('n', 0));
		$bytes .= _message(E => "$portal\0" . pack('N', $rows));
	}
	return $self->_send($bytes . _message(S => ''));
}

# Takes one message from the input, if a whole one is there.
sub _next_message
{
	my ($self) = @_;
	return if length $self->{input} < 5;
	my ($type, $length) = unpack 'aN', $self->{input};
	return if length $self->{input} < 1 + $length;
	my $body = substr $self->{input}, 5, $length - 4;
	substr($self->{input}, 0, 1 + $length) = '';
	return ($type, $body);
}

sub _fields
{
	my ($body) = @_;
	return map { substr($_, 0, 1) => substr($_, 1) } split /\0/, $body;
}

sub _take
{
	my ($self, $type, $body) = @_;
	my $answer = $self->{pending} //= { rows => [], state => '', message => '', notices => [], tags => [] };

	if ($type eq 'D')
	{
		my ($count, $at, @row) = (unpack('n', $body), 2);
		for (1 .. $count)
		{
			my $length = unpack 'l>', substr($body, $at, 4);
			push @row, $length < 0 ? undef : substr($body, $at + 4, $length);
			$at += 4 + ($length < 0 ? 0 : $length);
		}
		push @{ $answer->{rows} }, \@row;
	}
	elsif ($type eq 'E' || $type eq 'N')
	{
		my %fields = _fields($body);
		if ($type eq 'N')
		{
			push @{ $answer->{notices} }, "$fields{S}: $fields{M}";
		}
		else
		{
			@$answer{qw(state message)} = @fields{qw(C M)};
		}
	}
	elsif ($type eq 'C') { push @{ $answer->{tags} }, $body =~ s/\0$//r; }
	elsif ($type eq 'K') { $self->{pid} = unpack 'N', $body; }
	elsif ($type eq 'Z')
	{
		$answer->{transaction} = $body;
		$answer->{done} = 1;
	}
	return;
}

# Reads what has come, at most $seconds long; whether the answer is complete. A
# connection that the server closes ends it, too: `closed`.
sub done
{
	my ($self, $seconds) = @_;
	my $until = time + ($seconds // 0);

	while (!$self->{pending} || !$self->{pending}{done})
	{
		if (my ($type, $body) = $self->_next_message)
		{
			$self->_take($type, $body);
			next;
		}
		my $left = $until - time;
		return 0 unless IO::Select->new($self->{socket})->can_read($left > 0 ? $left : 0);
		my $count = $self->{socket}->sysread($self->{input}, 65536, length $self->{input});
		next if $count;
		$self->_take('', '');
		@{ $self->{pending} }{qw(done closed)} = (1, 1);
	}
	$self->{pending}{seconds} //= time - $self->{waits};
	return 1;
}

# The answer: rows, state (the SQLSTATE of an error, or ''), message, notices,
# tags, transaction (I, T, E), seconds since the question, closed.
sub answer
{
	my ($self, $seconds) = @_;
	$self->done($seconds // $patience) or die 'no answer in time';
	return $self->{pending};
}

# The answer's rows, as psql -At shows them, or the SQLSTATE of the error.
sub got
{
	my ($self, $seconds) = @_;
	my $answer = $self->answer($seconds);
	return $answer->{state} if $answer->{state};
	return join "\n", map { join '|', map { $_ // '' } @$_ } @{ $answer->{rows} };
}

sub query
{
	my ($self, $sql) = @_;
	return $self->send($sql)->got;
}

# The same, but an error is the test's end.
sub must
{
	my ($self, $sql) = @_;
	my $got = $self->query($sql);
	my $answer = $self->answer;
	die "$sql: $answer->{message}" if $answer->{state};
	return $got;
}

# Goes as a process does that is killed: the server hears nothing of it.
sub vanish
{
	my ($self) = @_;
	close $self->{socket};
	return;
}

sub quit
{
	my ($self) = @_;
	$self->_send(_message(X => ''));
	close $self->{socket};
	return;
}

# A session whose statement sleeps as the head of a queue or as a watcher, or
# waits for a lock: what pg_stat_activity says about these.
sub asleep
{
	my @sessions = @_;
	my $node = $sessions[0]{node};
	my $pids = join ',', map { $_->{pid} } @sessions;
	my $count = @sessions;
	return $node->poll_query_until('postgres',
		"SELECT count(*) = $count FROM pg_stat_activity
		 WHERE pid IN ($pids) AND state = 'active' AND wait_event_type IN ('Extension', 'Lock')");
}

1;
