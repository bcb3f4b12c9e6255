# A small client for the server's protocol: says exactly what was acknowledged before the connection was lost.
package PaimonWire;
use strict;
use warnings;
use IO::Socket::UNIX;

# Connects by Unix socket, without a password.  undef if nobody answers or the server is not ready.
sub connect
{
	my ($class, %arg) = @_;
	my $socket = IO::Socket::UNIX->new(Peer => "$arg{host}/.s.PGSQL.$arg{port}") or return;
	my $self = bless { socket => $socket, buffer => '' }, $class;
	my $startup = pack('N', 196608) . join("\0", 'user', $arg{user}, 'database', $arg{dbname} // 'postgres', '', '');
	my $result = eval {
		$self->_send(pack('N', length($startup) + 4) . $startup);
		$self->_answer(undef);
	};
	return if !$result || $result->{error};
	return $self;
}

# Runs one simple query.  Returns { rows, tags, tag, error => { C, M, ... } }; dies with "lost\n" if the server goes away.
# $copy: data for COPY FROM STDIN.
sub query
{
	my ($self, $sql, $copy) = @_;
	$self->_send('Q' . pack('N', length($sql) + 5) . $sql . "\0");
	return $self->_answer($copy);
}

# The rows of a query that must not fail.
sub rows
{
	my ($self, $sql) = @_;
	my $result = $self->query($sql);
	die "query failed: $result->{error}{C} $result->{error}{M}\n$sql\n" if $result->{error};
	return $result->{rows};
}

sub value
{
	my ($self, $sql) = @_;
	return $self->rows($sql)->[0][0];
}

sub close
{
	my ($self) = @_;
	eval { $self->_send('X' . pack('N', 4)) };
	close($self->{socket});
	return;
}

sub _send
{
	my ($self, $data) = @_;
	local $SIG{PIPE} = 'IGNORE';
	while (length $data)
	{
		my $n = syswrite($self->{socket}, $data);
		die "lost\n" if !defined $n;
		substr($data, 0, $n) = '';
	}
	return;
}

sub _take
{
	my ($self, $n) = @_;
	while (length $self->{buffer} < $n)
	{
		my $got = sysread($self->{socket}, $self->{buffer}, 65536, length $self->{buffer});
		die "lost\n" if !$got;
	}
	return substr($self->{buffer}, 0, $n, '');
}

sub _answer
{
	my ($self, $copy) = @_;
	my %result = (rows => [], tags => []);

	while (1)
	{
		my ($type, $len) = unpack('aN', $self->_take(5));
		my $body = $self->_take($len - 4);
		if ($type eq 'D')
		{
			my ($n, $pos, @row) = (unpack('n', $body), 2);
			for (1 .. $n)
			{
				my $size = unpack('l>', substr($body, $pos, 4));
				$pos += 4;
				push @row, $size < 0 ? undef : substr($body, $pos, $size);
				$pos += $size if $size > 0;
			}
			push @{ $result{rows} }, \@row;
		}
		elsif ($type eq 'C')
		{
			push @{ $result{tags} }, $result{tag} = unpack('Z*', $body);
		}
		elsif ($type eq 'E')
		{
			$result{error} = { map { substr($_, 0, 1) => substr($_, 1) } grep { length } split /\0/, $body };

			# The server is going down, or is not up: nothing more will come.
			die "lost\n" if $result{error}{S} =~ /^(?:FATAL|PANIC)/;
		}
		elsif ($type eq 'G')
		{
			$self->_send('d' . pack('N', length($copy) + 4) . $copy . 'c' . pack('N', 4));
		}
		elsif ($type eq 'Z')
		{
			$self->{status} = $body;
			return \%result;
		}
	}
}

1;
