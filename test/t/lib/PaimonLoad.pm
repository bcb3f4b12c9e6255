# Load for crash tests: sessions whose rows can be foretold, and what must be in the tables afterwards.
#
# Session c owns the rows with i % 8 = c of all tables, so that its own transactions alone decide about them.  A row is
# (k, i, n, f): k is the key made of i, n the number of the transaction that wrote it, f follows from i and n.  All
# sessions move amounts in a table of their own, whose sum stays.
#
# What a session does goes into a file of its own before it is done: T n ops (about to begin), A (acknowledged), X (rolled
# back), P (prepared), C and R (about to be committed or rolled back as prepared), E text (something is wrong).
package PaimonLoad;
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use JSON::PP;
use Time::HiRes qw(time);
use PaimonWire;

use constant STRIDE => 8;
use constant ACCOUNTS => 20;

my %key = (
	kv => 'i',
	kt => q{'x' || i % 100 || '-' || i},
	ap => 'i',
	map { ("own_$_" => 'i') } 0 .. 3);

# Tables of all sessions, small buffers first: what is more than a sixteenth of write-buffer-size is a large commit.
sub schema
{
	my ($sessions) = @_;
	my @sql = (
		q{CREATE TABLE kv (k int PRIMARY KEY, i int, n int, f text) USING paimon WITH (bucket = 3, "write-buffer-size" = '256kb')},
		q{CREATE TABLE kt (k text PRIMARY KEY, i int, n int, f text) USING paimon WITH ("write-buffer-size" = '16mb')},
		q{CREATE TABLE ap (k int, i int, n int, f text) USING paimon WITH ("write-buffer-size" = '128kb')},
		q{CREATE TABLE hot (k int PRIMARY KEY, session int, n int) USING paimon},
		q{CREATE TABLE bank (k int PRIMARY KEY, v bigint) USING paimon},
		'INSERT INTO bank SELECT i, 100 FROM generate_series(0, ' . (ACCOUNTS - 1) . ') i');
	push @sql, map {
		qq{CREATE TABLE own_$_ (k int PRIMARY KEY, i int, n int, f text) USING paimon WITH ("write-buffer-size" = '64kb', bucket = 2)}
	} 0 .. $sessions - 1;
	return @sql;
}

# The tables whose rows belong to one session each.
sub tables
{
	my ($sessions) = @_;
	return (qw(kv kt ap), map { "own_$_" } 0 .. $sessions - 1);
}

sub new_model
{
	my ($session) = @_;
	return { session => $session, n => 0, fresh => 0, aborted => {}, rows => { kv => {}, kt => {}, ap => {}, "own_$session" => {} } };
}

sub filler
{
	my ($i, $n) = @_;
	return md5_hex("$i:$n") x (1 + $n % 5);
}

# ----- what a transaction does to the model -----

# An operation: { t => table, do => put|upd|del|trunc, a, b: first and last i }.  Returns how many rows it touches.
sub apply
{
	my ($model, $n, $op) = @_;
	my $rows = $model->{rows}{ $op->{t} };
	my $count = 0;

	if ($op->{do} eq 'trunc')
	{
		%$rows = ();
		return 0;
	}
	for (my $i = $op->{a}; $i <= $op->{b}; $i += STRIDE)
	{
		next if $op->{do} ne 'put' && !exists $rows->{$i};
		$count++;
		if ($op->{do} eq 'del') { delete $rows->{$i} }
		else { $rows->{$i} = $n }
	}
	return $count;
}

sub copy_of
{
	my ($model) = @_;
	return { %$model, rows => { map { $_ => { %{ $model->{rows}{$_} } } } keys %{ $model->{rows} } } };
}

# ----- a session -----

sub _range
{
	my ($self, $table, $length) = @_;
	my $model = $self->{model};
	my $first;

	if ($table eq 'ap')
	{
		$first = $model->{fresh};
		$model->{fresh} += $length;
	}
	else
	{
		$first = int rand($table =~ /^own/ ? 300 : 1500);
	}
	return ($first * STRIDE + $model->{session}, ($first + $length - 1) * STRIDE + $model->{session});
}

sub _old_range
{
	my ($self, $table, $length) = @_;
	my $first = int rand($table eq 'ap' ? $self->{model}{fresh} + 1 : $table =~ /^own/ ? 300 : 1500);
	return ($first * STRIDE + $self->{model}{session}, ($first + $length - 1) * STRIDE + $self->{model}{session});
}

sub _some_op
{
	my ($self, $length) = @_;
	my @tables = ('kv', 'kv', 'kt', 'ap', "own_$self->{model}{session}");
	my $table = $tables[rand @tables];
	my $do = (qw(put put list copy upd upd del))[rand 7];
	my $rows = $length // ($do eq 'list' ? 100 : (1, 1, 1, 3, 10, 40, 120)[rand 7]);
	my ($a, $b) = $do =~ /put|list|copy/ ? $self->_range($table, $rows) : $self->_old_range($table, $rows);

	return { t => $table, do => $do, a => $a, b => $b };
}

# Rows of ap are never deleted by range growth alone: keeps it at some thousand rows.
sub _trim_append
{
	my ($self) = @_;
	my $model = $self->{model};
	return if $model->{fresh} < 3000 || keys %{ $model->{rows}{ap} } < 2500;
	return { t => 'ap', do => 'del', a => $model->{session}, b => $model->{fresh} * STRIDE / 2 };
}

sub _sql
{
	my ($self, $n, $op) = @_;
	my $where = "i BETWEEN $op->{a} AND $op->{b} AND i % 8 = $self->{model}{session}";
	my $f = 'repeat(md5(i || \':\' || %s), 1 + %s %% 5)';

	return "INSERT INTO $op->{t} VALUES " . _values($n, $op) if $op->{do} eq 'list';
	$where = 'k = ' . ($key{ $op->{t} } =~ s/\bi\b/$op->{a}/gr) if $op->{do} =~ /upd|del/ && $op->{a} == $op->{b} && $op->{a} % 3;
	return "TRUNCATE $op->{t}" if $op->{do} eq 'trunc';
	return "DELETE FROM $op->{t} WHERE $where" if $op->{do} eq 'del';
	return sprintf("UPDATE %s SET n = %d, f = $f WHERE %s", $op->{t}, $n, $n, $n, $where) if $op->{do} eq 'upd';
	return sprintf("INSERT INTO %s SELECT %s, i, %d, $f FROM generate_series(%d, %d, %d) i",
		$op->{t}, $key{ $op->{t} }, $n, $n, $n, $op->{a}, $op->{b}, STRIDE);
}

# The rows of an operation: [k, i, n, f].
sub _rows
{
	my ($n, $op) = @_;
	my @rows;

	for (my $i = $op->{a}; $i <= $op->{b}; $i += STRIDE)
	{
		push @rows, [ $op->{t} eq 'kt' ? 'x' . ($i % 100) . "-$i" : $i, $i, $n, filler($i, $n) ];
	}
	return @rows;
}

# As a list of constants; some rows have calls that nobody evaluates beforehand, and expressions.
sub _values
{
	my ($n, $op) = @_;
	my @rows = map {
		my ($k, $i, undef, $f) = @$_;
		($i % 3 ? "('$k', $i" : "('$k', $i + 0 * pg_backend_pid()") . ", $n, " . ($i % 5 ? "'$f')" : "array_to_string('{$f}'::text[], ''))");
	} _rows($n, $op);
	return join ', ', @rows;
}

sub _copy_data
{
	my ($self, $n, $op) = @_;
	return join('', map { join("\t", @$_) . "\n" } _rows($n, $op));
}

sub _log
{
	my ($self, $line) = @_;
	syswrite($self->{log}, "$line\n") // die "log: $!";
	return;
}

# Errors that the load itself brings about.
sub _query
{
	my ($self, $sql, $copy) = @_;
	my $result = $self->{wire}->query($sql, $copy);

	if ($result->{error} && $result->{error}{C} !~ /^(?:40P01|40001)$/ && $result->{error}{M} !~ /injected error|cannot PREPARE a transaction that has written run files/)
	{
		$self->_log("E $result->{error}{C} $result->{error}{M} in: $sql");
		die "wrong\n";
	}
	die "aborted\n" if $result->{error};
	return $result;
}

# One operation on server and model, comparing row counts.
sub _do
{
	my ($self, $model, $n, $op) = @_;
	my $copy = $op->{do} eq 'copy';
	my $result = $copy ? $self->_query("COPY $op->{t} FROM STDIN", $self->_copy_data($n, $op)) : $self->_query($self->_sql($n, $op));
	my $count = apply($model, $n, { %$op, do => $op->{do} =~ s/copy|list/put/r });

	if ($op->{do} ne 'trunc' && $result->{tag} !~ / $count$/)
	{
		$self->_log("E $result->{tag}, not $count rows, in: " . $self->_sql($n, $op));
		die "wrong\n";
	}
	return;
}

# What the session sees of one of its tables, its own changes included.
sub _look
{
	my ($self, $model) = @_;
	my $table = (qw(kv kt ap))[rand 3];
	my $rows = $model->{rows}{$table};
	my ($count, $sum) = (scalar keys %$rows, 0);

	$sum += $_ for values %$rows;
	my $got = $self->_query("SELECT count(*), coalesce(sum(n), 0) FROM $table WHERE i % 8 = $model->{session}")->{rows}[0];
	if ($got->[0] != $count || $got->[1] != $sum)
	{
		$self->_log("E $table seen from inside: $got->[0] rows, sum $got->[1], not $count rows, sum $sum");
		die "wrong\n";
	}
	return;
}

# A row that all sessions write, most of them without looking.
sub _hot
{
	my ($self, $n) = @_;
	my $k = int rand 4;
	$self->_query(rand() < 0.7
		? "INSERT INTO hot VALUES ($k, $self->{model}{session}, $n)"
		: "UPDATE hot SET session = $self->{model}{session}, n = $n WHERE k = $k");
	return;
}

sub _transfer
{
	my ($self) = @_;
	my $amount = 1 + int rand 5;

	$self->_query("UPDATE bank SET v = v - $amount WHERE k = " . int rand ACCOUNTS);
	$self->_query("UPDATE bank SET v = v + $amount WHERE k = " . int rand ACCOUNTS);
	return;
}

# Plans a transaction: steps in order, and which operations count at its end.
sub _plan
{
	my ($self, $shape) = @_;
	my (@steps, @effect);

	if ($shape eq 'savepoints')
	{
		for (0 .. rand 3)
		{
			my @ops = map { $self->_some_op } 0 .. rand 3;
			my $keep = rand() < 0.5;
			push @steps, 'SAVEPOINT s', @ops, $keep ? 'RELEASE s' : 'ROLLBACK TO s';
			push @effect, @ops if $keep;
			my $op = $self->_some_op;
			push @steps, $op;
			push @effect, $op;
		}
	}
	else
	{
		@effect = $shape eq 'large' ? map { $self->_some_op((300, 700, 2000)[rand 3]) } 0 .. rand 2
		  : $shape eq 'prepared' ? map { $self->_some_op((1, 3, 10)[rand 3]) } 0 .. rand 3
		  : map { $self->_some_op } 0 .. rand 4;
		my $trim = $shape eq 'prepared' ? undef : $self->_trim_append;
		push @effect, $trim if $trim;
		@effect = ({ t => "own_$self->{model}{session}", do => 'trunc' }, @effect) if $shape eq 'truncate';
		@steps = @effect;
		splice @steps, rand @steps + 1, 0, 'look' if rand() < 0.2;
		push @steps, 'transfer' if rand() < 0.3;
		unshift @steps, 'hot' if rand() < ($self->{hot} // 0.15);
	}
	return (\@steps, \@effect);
}

sub _effect_json
{
	my ($effect) = @_;
	return encode_json([ map { { %$_, do => $_->{do} =~ s/copy|list/put/r } } @$effect ]);
}

# A block of statements.  Changes the model only if it was acknowledged.
sub _transaction
{
	my ($self, $shape) = @_;
	my $model = $self->{model};
	my $n = ++$model->{n};
	my ($steps, $effect) = $self->_plan($shape);
	my $work = copy_of($model);
	my $saved;

	$self->_log("T $n " . _effect_json($effect));
	my $done = eval {
		$self->_query(rand() < 0.2 ? 'BEGIN ISOLATION LEVEL REPEATABLE READ' : 'BEGIN');
		for my $step (@$steps)
		{
			if (ref $step) { $self->_do($work, $n, $step) }
			elsif ($step eq 'look') { $self->_look($work) }
			elsif ($step eq 'transfer') { $self->_transfer }
			elsif ($step eq 'hot') { $self->_hot($n) }
			else
			{
				$self->_query($step);
				$saved = copy_of($work) if $step =~ /^SAVEPOINT/;
				$work = $saved if $step =~ /^ROLLBACK/;
			}
		}
		if ($shape eq 'prepared') { $self->_prepared($n) }
		else
		{
			$self->_query($shape eq 'rollback' ? 'ROLLBACK' : 'COMMIT');
			$self->_log($shape eq 'rollback' ? 'X' : 'A');
			$shape ne 'rollback';
		}
	};
	$model->{fresh} = $work->{fresh} if $work->{fresh} > $model->{fresh};
	if ($@)
	{
		die $@ if $@ ne "aborted\n";
		$self->{wire}->query('ROLLBACK') if $self->{wire}{status} ne 'I';
		$self->_log('X');
		return;
	}
	$model->{rows} = $work->{rows} if $done;
	return;
}

sub _prepared
{
	my ($self, $n) = @_;
	my $name = "s$self->{model}{session}_$n";

	$self->_query("PREPARE TRANSACTION '$name'");
	$self->_log('P');
	$self->_query('SELECT count(*) FROM kv') if rand() < 0.5;
	my $commit = rand() < 0.7;
	$self->_log($commit ? 'C' : 'R');
	$self->_query(($commit ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$name'");
	$self->_log($commit ? 'A' : 'X');
	return $commit;
}

# One statement without BEGIN.
sub _single
{
	my ($self) = @_;
	my $model = $self->{model};
	my $n = ++$model->{n};
	my $op = $self->_some_op((1, 1, 2, 5)[rand 4]);
	my $work = copy_of({ %$model, rows => { $op->{t} => $model->{rows}{ $op->{t} } } });

	$self->_log("T $n " . _effect_json([$op]));
	if (eval { $self->_do($work, $n, $op); 1 })
	{
		$self->_log('A');
		$model->{rows}{ $op->{t} } = $work->{rows}{ $op->{t} };
	}
	else
	{
		die $@ if $@ ne "aborted\n";
		$self->_log('X');
	}
	return;
}

# The weights of what a session does next.
my %weights = (
	single => 30, block => 25, savepoints => 12, large => 9, prepared => 5, rollback => 4, truncate => 2,
	flush => 6, vacuum => 3);

# Runs a session until the server is gone or $arg{until} (a time) is past; in a process of its own.  Arguments: connect (hash for
# PaimonWire), model, log (file name), seed, until, focus (hash: other weights; hot: how often the row that all want).
sub session
{
	my (%arg) = @_;
	my $self = bless { model => $arg{model}, hot => $arg{focus}{hot} }, __PACKAGE__;
	my %weight = (%weights, %{ $arg{focus} // {} });
	my @choice = map { ($_) x $weight{$_} } sort keys %weights;

	srand $arg{seed};
	open($self->{log}, '>', $arg{log}) or die "$arg{log}: $!";
	$self->{wire} = PaimonWire->connect(%{ $arg{connect} }) or return;
	eval {
		$self->_query("SET deadlock_timeout = '50ms'; SET statement_timeout = '60s'");
		while (time() < $arg{until})
		{
			my $what = $choice[rand @choice];
			if ($what eq 'single') { $self->_single }
			elsif ($what =~ /flush|vacuum/)
			{
				my @tables = ('kv', 'kt', 'ap', 'bank', "own_$self->{model}{session}");
				my $table = $tables[rand @tables];
				my $freeze = rand() < 0.4 ? '(FREEZE)' : '';
				eval { $self->_query($what eq 'flush' ? "SELECT paimon.flush('$table')" : "VACUUM $freeze $table"); 1 }
				  or $@ eq "aborted\n"
				  or die $@;
			}
			else { $self->_transaction($what) }
		}
		1;
	} or $@ =~ /^(?:lost|wrong)$/ or $self->_log('E ' . ($@ =~ s/\n/ /gr));
	return;
}

# A session that keeps a snapshot and must see the same with it all the time.
sub reader
{
	my (%arg) = @_;
	my $wire = PaimonWire->connect(%{ $arg{connect} }) or return;
	my $sum = "SELECT (SELECT count(*) || ' ' || coalesce(sum(n), 0) FROM kv) || ' ' || (SELECT count(*) || ' ' || coalesce(sum(n), 0) FROM kt)"
	  . " || ' ' || (SELECT count(*) || ' ' || coalesce(sum(n), 0) FROM ap), (SELECT sum(v) FROM bank)";

	open(my $log, '>', $arg{log}) or die "$arg{log}: $!";
	eval {
		while (time() < $arg{until})
		{
			my $first;
			$wire->rows('BEGIN ISOLATION LEVEL REPEATABLE READ');
			for (1 .. 6)
			{
				my $row = $wire->rows($sum)->[0];
				$first //= $row->[0];
				syswrite($log, "E a snapshot changed: $first, then $row->[0]\n") if $row->[0] ne $first;
				syswrite($log, "E the sum of accounts is $row->[1]\n") if $row->[1] != 100 * ACCOUNTS;
			}
			$wire->rows('COMMIT');
		}
		1;
	} or $@ eq "lost\n" or syswrite($log, 'E ' . ($@ =~ s/\n/ /gr) . "\n");
	return;
}

# ----- after the crash -----

# Reads a session's file into the model.  Returns ({ n, effect, state } of the transaction in flight or undef, list of what went wrong).
sub replay
{
	my ($model, $file) = @_;
	my ($flight, @wrong);

	open(my $in, '<', $file) or return;
	while (my $line = <$in>)
	{
		chomp $line;
		if ($line =~ /^T (\d+) (.*)/) { $flight = { n => $1, effect => decode_json($2), state => 'T' } }
		elsif ($line =~ /^E (.*)/) { push @wrong, "session $model->{session}: $1" }
		else
		{
			$flight->{state} = $line;
			commit($model, $flight) if $line eq 'A';
			abort($model, $flight, 1) if $line eq 'X';
			undef $flight if $line =~ /^[AX]/;
		}
	}
	return ($flight, @wrong);
}

# The numbers that a transaction used are used, whatever became of it.
sub abort
{
	my ($model, $flight, $known) = @_;
	$model->{n} = $flight->{n};
	$model->{aborted}{ $flight->{n} } = 1 if $known;
	for my $op (grep { $_->{t} eq 'ap' && $_->{do} eq 'put' } @{ $flight->{effect} })
	{
		my $next = ($op->{b} - $model->{session}) / STRIDE + 1;
		$model->{fresh} = $next if $next > $model->{fresh};
	}
	return;
}

sub commit
{
	my ($model, $flight) = @_;
	apply($model, $flight->{n}, $_) for @{ $flight->{effect} };
	abort($model, $flight);
	return;
}

# After TRUNCATE of all tables.
sub forget_rows
{
	my ($model) = @_;
	%$_ = () for values %{ $model->{rows} };
	$model->{fresh} = 0;
	return;
}

# How the rows found differ from the model: a list of texts, empty if they do not.
sub differences
{
	my ($model, $found) = @_;
	my @diff;

	for my $table (sort keys %{ $model->{rows} })
	{
		my ($want, $have) = ($model->{rows}{$table}, $found->{$table} // {});
		my @bad = grep { ($want->{$_} // '') ne ($have->{$_} // '') } keys %{ { %$want, %$have } };
		push @diff, "$table, session $model->{session}: " . scalar(@bad) . ' rows differ of ' . scalar(keys %$want) . ', for instance '
		  . join(', ', map { "i $_: n " . ($have->{$_} // 'none') . ' instead of ' . ($want->{$_} // 'none') } (sort { $a <=> $b } @bad)[ 0 .. (@bad > 4 ? 4 : $#bad) ])
		  if @bad;
	}
	return @diff;
}

1;
