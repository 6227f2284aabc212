# What is attached stays held, by the ttl that it had last; what is not attached any
# more is not renewed; and what holds one lease up holds up no other.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Keeper;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('renews', max_prepared_transactions => 5);
my $look = Lease::Session->connect($node);
my ($one, $two, $busy) = map { Lease::Session->connect($node) } 1 .. 3;
my $log = new_log($node);

sub column { return $look->must("SELECT $_[1] FROM dist_lock WHERE name = '$_[0]'") }

# Many lives at once, then a few ttls of waiting.
attached($one, '1 s', 'kept', 'detached', 'released', 'rolled back to', 'moved', 'extended');
attached($one, '1 h', 'shortened by renew', 'shortened by try', 'shortened by renew_all', 'shortened by acquire');
attached($one, '1 s', 'made longer');
my %token = map { $_ => held($look, $_) } 'kept', 'moved', 'made longer', 'shortened by renew';
$one->must(q{SELECT lease_try('not attached', 'me', '1 s')});
$one->must(q{BEGIN; SELECT lease_try('attach rolled back', 'me', '1 s'); COMMIT;
	BEGIN; SELECT lease_attach('attach rolled back', 'me'); ROLLBACK});
$one->must(q{BEGIN; SELECT lease_try('grant rolled back', 'me', '1 h'), lease_attach('grant rolled back', 'me'); ROLLBACK});
$one->must(q{BEGIN; SELECT lease_try('attach rolled back to', 'me', '1 s');
	SAVEPOINT s; SELECT lease_attach('attach rolled back to', 'me'); ROLLBACK TO s; COMMIT});
$one->must(q{BEGIN; SAVEPOINT s; SELECT lease_detach('rolled back to', 'me'); ROLLBACK TO s; COMMIT});
is($one->must(q{SELECT lease_detach('detached', 'me'), lease_release('released', 'me')}), 't|t', 'detached, released');
is($two->must(q{SELECT lease_attach('moved', 'me')}), 't', 'a second session of the owner attaches it');
is($two->must(q{SELECT 1/lease_try('extended', 'me', '1100 ms')::int, lease_detach('extended', 'me')}),
	'1|f', 'a second session extends one and cannot detach it');
is($look->must(q{SELECT lease_renew('shortened by renew', 'me', '1 s'), lease_try('shortened by try', 'me', '1 s'),
		lease_renew_all('{shortened by renew_all}', 'me', '1 s')}),
	't|t|{"shortened by renew_all"}', 'others renew with a shorter ttl');
$look->must(q{CALL lease_acquire('shortened by acquire', 'me', '1 s')});
$look->must(q{SELECT lease_renew('made longer', 'me', '1 h')});
is($look->must(q{SELECT count(*) FROM dist_lock WHERE name = 'grant rolled back'}), '0', 'a grant rolled back');
is($look->must(qq{SELECT session_pid = $one->{pid} FROM leases WHERE name = 'kept'}), 't', 'leases shows whose session it is');
is($look->must(qq{SELECT session_pid = $two->{pid} FROM leases WHERE name = 'moved'}), 't', 'and where it was moved');
my $keeper = keeper($look);
is($look->must(qq{SELECT backend_type, datname, usename IS NULL OR usename <> '' FROM pg_stat_activity WHERE pid = $keeper}),
	'lease keeper|postgres|t', 'the keeper is shown by its type and database');
my $longer = column('made longer', 'renewed_at');
my $grants = $look->must('SELECT sum(grants) FROM dist_lock');
sleep 2.2;
is(join(' ', map { held($look, $_) } sort keys %token), join(' ', map { $token{$_} } sort keys %token),
	'kept, under the same tokens, for several ttls');
for my $name ('extended', 'rolled back to', 'shortened by try', 'shortened by renew_all', 'shortened by acquire')
{
	isnt(held($look, $name), '', "$name: kept");
}
for my $name ('detached', 'released', 'not attached', 'attach rolled back', 'attach rolled back to')
{
	is(held($look, $name), '', "$name: not kept");
}
is(column('extended', 'ttl'), '00:00:01.1', 'renewed by the ttl that the other session gave');
is(column('shortened by renew', q{ttl, expiry - clock_timestamp() <= '1 s'}), '00:00:01|t',
	'a shorter ttl is followed');
is(column('made longer', 'renewed_at'), $longer, 'after a longer one it is left alone for long');
is(column('kept', q{renewed_at - acquired_at > '1.1 s' AND min_margin BETWEEN '100 ms' AND '800 ms'}), 't',
	'renewed with a margin, which is shown');
is($look->must('SELECT sum(grants) FROM dist_lock'), $grants, 'nothing was granted anew');
is(keeper($look), $keeper, 'one keeper for all');
log_is_quiet($node, $log, 'life');

# Nothing of it while it sleeps: neither snapshot nor xid nor any lock but its office.
{
	my ($seen, @bad) = (0);
	for (1 .. 100)
	{
		my ($state, $xmin, $xid, $locks) = split /\|/, $look->must(qq{
			SELECT a.state, a.backend_xmin IS NULL, a.backend_xid IS NULL,
				(SELECT string_agg(DISTINCT locktype || coalesce(objsubid, 0), ' ') FROM pg_locks l WHERE l.pid = a.pid)
			FROM pg_stat_activity a WHERE a.pid = $keeper});
		next if $state ne 'idle' || $look->must("SELECT state_change < now() - interval '20 ms' FROM pg_stat_activity WHERE pid = $keeper") ne 't';
		$seen++;
		push @bad, "$xmin $xid $locks" if "$xmin $xid $locks" ne 't t advisory27653 virtualxid0';
	}
	cmp_ok($seen, '>', 10, 'the keeper was seen asleep');
	# A look that falls into a round sees more.
	cmp_ok(scalar @bad, '<=', $seen / 4, 'asleep it holds no snapshot, no gate and no lock of a lease') or diag(join "\n", @bad);
}
ok(eventually($look, q{SELECT n_tup_hot_upd > 5 FROM pg_stat_user_tables WHERE relname = 'dist_lock'}, 5),
	'its updates are counted while it lives, so that autovacuum knows');
is($look->must(q{SELECT lease_release(name, 'me') FROM dist_lock WHERE owner IS NOT NULL AND expiry > clock_timestamp() AND name <> 'kept'} ) =~ s/\n//gr =~ s/t//gr,
	'', 'all but one released');

# Released at full speed, and in the middle of renewals: what was released is not touched.
for my $how ([ 1000, 0 ], [ 100, 0.012 ])
{
	my ($rounds, $pause) = @$how;
	my $answer = $busy->send(qq{
		DO \$\$
		DECLARE
			place tid;
			touched int := 0;
			late int := 0;
			released bool;
		BEGIN
			FOR i IN 1 .. $rounds LOOP
				WHILE NOT lease_try('rounds', 'me', '30 ms') LOOP
					COMMIT;
				END LOOP;
				COMMIT;
				IF NOT lease_attach('rounds', 'me') THEN
					late := late + 1;
				END IF;
				COMMIT;
				PERFORM pg_sleep(random() * $pause);
				-- A round that came too late has a row that expired: the keeper unbinds that.
				released := lease_release('rounds', 'me');
				late := late + (NOT released)::int;
				COMMIT;
				SELECT ctid INTO place FROM dist_lock WHERE name = 'rounds';
				COMMIT;
				PERFORM pg_sleep($pause / 4);
				IF released AND EXISTS (SELECT FROM dist_lock WHERE name = 'rounds' AND (session_pid IS NOT NULL OR ctid <> place AND owner IS NOT NULL)) THEN
					touched := touched + 1;
				END IF;
				COMMIT;
			END LOOP;
			RAISE NOTICE '% touched, % late', touched, late;
		END \$\$})->answer;
	my ($touched, $late) = "@{ $answer->{notices} }" =~ /(\d+) touched, (\d+) late/ or diag($answer->{message});
	is($touched, 0, "$rounds rounds of attach and release: nothing renewed what was released");
	cmp_ok($late, '<', $rounds / 10, "$rounds rounds: " . ($late // '') . ' that the machine was too slow for');
}

# A hand-made lock on one row, for more than its ttl, and briefly on another.
my @names = map { "row $_" } 1 .. 20;
attached($one, '1500 ms', @names);
$busy->must(q{BEGIN; SELECT FROM dist_lock WHERE name = 'row 7' FOR UPDATE});
$two->must(q{BEGIN; SELECT FROM dist_lock WHERE name = 'row 8' FOR UPDATE});
sleep 0.9;
$two->must('COMMIT');
sleep 1.3;
my @lost = grep { held($look, $_) eq '' } @names;
is("@lost", 'row 7', 'only the locked row was not renewed; one that was locked for a while was');
$busy->must('COMMIT');
ok(eventually($look, q{SELECT session_pid IS NULL FROM dist_lock WHERE name = 'row 7'}, 5), 'it is unbound');
is(held($look, 'row 7'), '', 'and does not come back');
is(column('row 7', 'owner, last_end IS NULL'), 'me|t', 'it is left as one that expired');

# A fence on a renewed lease is no obstacle; on an orphan's, the release comes after it.
attached($two, '1 h', 'orphan');
$busy->must('BEGIN; SELECT lease_fence(name, token) FROM dist_lock WHERE name IN (\'orphan\', \'row 1\')');
$two->quit;
my $before = column('row 1', 'renewed_at');
ok(eventually($look, "SELECT renewed_at > '$before' FROM dist_lock WHERE name = 'row 1'", 5), 'renewed behind an open fence');
isnt(held($look, 'orphan'), '', 'an orphan behind an open fence is not released');
$look->must(q{SELECT lease_fence('orphan', lease_token('orphan', 'me'))});
pass('its gate is not kept: another fence passes');
$busy->must('COMMIT');
ok(eventually($look, q{SELECT lease_token('orphan', 'me') IS NULL}, 3), 'after the fence it is');

# A row whose renewal fails.
$log = new_log($node);
$look->must(q{
	CREATE TABLE ran_as (who name, super text);
	GRANT ALL ON ran_as TO PUBLIC;
	CREATE ROLE table_owner;
	GRANT ALL ON SCHEMA public TO table_owner;
	CREATE FUNCTION note_user() RETURNS void VOLATILE LANGUAGE sql AS $$
		INSERT INTO public.ran_as VALUES (current_user, current_setting('is_superuser')) $$;
	CREATE FUNCTION fail(name text, acquired timestamptz, renewed timestamptz) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		IF name = 'bad' AND renewed > acquired THEN
			RAISE 'bad renewal';
		END IF;
		IF name = 'row 1' THEN
			PERFORM public.note_user();
		END IF;
		RETURN 1;
	END $$});
$look->must('ALTER TABLE dist_lock OWNER TO table_owner');
$look->must('CREATE INDEX failing ON dist_lock (fail(name, acquired_at, renewed_at))');
attached($one, '1500 ms', 'bad');
sleep 2.2;
@lost = grep { held($look, $_) eq '' && $_ ne 'row 7' } @names, 'bad', 'kept';
is("@lost", 'bad', 'a renewal that fails takes no other with it');
my $errors = () = slurp_file($node->logfile, $log) =~ /ERROR:  bad renewal/g;
cmp_ok($errors, '>', 0, 'it is in the log');
cmp_ok($errors, '<', 12, "but does not fill it ($errors errors)");
is($look->must(q{SELECT DISTINCT who FROM ran_as WHERE who <> (SELECT usename FROM pg_stat_activity WHERE pid = pg_backend_pid())}),
	'table_owner', 'what the index calls is run as the owner of the table');
is($look->must(qq{SELECT count(*) FROM ran_as WHERE who <> 'table_owner' AND who <> current_user}), '0', 'and as nobody else');
$look->must('DROP INDEX failing; DROP TABLE ran_as');
$look->must('DO $$ BEGIN EXECUTE format(\'ALTER TABLE dist_lock OWNER TO %I\', current_user); END $$');
ok(eventually($look, q{SELECT session_pid IS NULL FROM dist_lock WHERE name = 'bad'}, 5), 'when the cause is gone, it is unbound');
log_is_quiet($node, $log, 'a failing row', qr/bad renewal/);

# Whose session it is: process ID and start decide.
$log = new_log($node);
$look->must(qq{
	INSERT INTO dist_lock(name, owner, expiry, token, ttl, session_pid, session_start)
	SELECT 'by hand ' || n, 'me', clock_timestamp() + interval '1 h', 1, '1 h', pid, start
	FROM (VALUES (1, $one->{pid}, (SELECT backend_start - interval '1 min' FROM pg_stat_activity WHERE pid = $one->{pid})),
		(2, 999999999, clock_timestamp()), (3, $one->{pid}, NULL), (4, -1, '-infinity'), (5, 0, 'infinity'),
		(6, $look->{pid}, (SELECT backend_start FROM pg_stat_activity WHERE pid = $look->{pid}))) AS v(n, pid, start)});
ok(eventually($look, q{SELECT count(*) = 6 FROM dist_lock WHERE name ~ 'by hand' AND owner IS NULL AND last_end = 'released' AND session_pid IS NULL}, 5),
	'rows of a process ID that came back, or never was, are released')
  or diag($look->must(q{SELECT * FROM dist_lock WHERE name ~ 'by hand'}));
$look->must(qq{INSERT INTO dist_lock(name, owner, expiry, token, ttl, session_pid, session_start)
	SELECT n, 'me', CASE WHEN n = 'endless' THEN 'infinity' ELSE clock_timestamp() + interval '1 s' END, 1, CASE WHEN n <> 'no ttl' THEN interval '1 s' END, $one->{pid}, session_start
	FROM dist_lock, unnest(ARRAY['mine', 'endless', 'no ttl']) n WHERE name = 'kept'});
$look->must(q{SELECT lease_attach('kept', 'me')});
ok(eventually($look, q{SELECT count(*) FILTER (WHERE name = 'mine') = 1 AND count(*) FILTER (WHERE name = 'no ttl') = 0
		FROM dist_lock WHERE session_pid IS NOT NULL AND expiry > clock_timestamp() AND clock_timestamp() > (SELECT acquired_at + '1 s' FROM dist_lock WHERE name = 'kept')}, 5),
	'a row made by hand for a living session is kept; one without ttl expires');
is($look->must(q{SELECT expiry FROM dist_lock WHERE name = 'endless'}), 'infinity', 'an infinite one is left alone');
log_is_quiet($node, $log, 'rows made by hand');

# A role that is no more: its tenure may run out, and nobody is busy meanwhile.
$look->must('CREATE ROLE holder; GRANT holder TO CURRENT_USER');
$look->must('SET ROLE holder');
attached($look, '1800 ms', 'of a role');
$look->must('RESET ROLE; DROP ROLE holder');
$look->must(q{SELECT lease_release(name, 'me') FROM dist_lock WHERE name LIKE 'row %' AND owner IS NOT NULL AND expiry > clock_timestamp()});
$look->must(q{SELECT lease_renew('kept', 'me', '1 h')});
$look->must(q{DELETE FROM dist_lock WHERE name = 'mine'});
sleep 0.8;
my $rounds = rounds_in($look, 0.8);
cmp_ok($rounds, '<', 6, "a tenure of a dropped role keeps nobody busy ($rounds rounds in 0.8 s)");
ok(eventually($look, q{SELECT session_pid IS NULL FROM dist_lock WHERE name = 'of a role'}, 5), 'and ends at its expiry');

# Prepared: bound to a session that may be gone by the commit.
my $guest = Lease::Session->connect($node);
$guest->must(q{SELECT lease_try('prepared', 'me', '1 h'), lease_try('prepared, stays', 'me', '8 s')});
$guest->must(q{BEGIN; SELECT lease_attach('prepared', 'me'); PREPARE TRANSACTION 'p'});
$guest->quit;
$one->must(q{BEGIN; SELECT lease_attach('prepared, stays', 'me'); PREPARE TRANSACTION 'q'});
$look->must(q{COMMIT PREPARED 'q'});
sleep 0.1;
isnt(held($look, 'prepared'), '', 'an attach that is prepared: nothing yet');
$look->must(q{COMMIT PREPARED 'p'});
ok(eventually($look, q{SELECT lease_token('prepared', 'me') IS NULL}, 5), 'committed after its session went: released');

# Nobody is bound any more: it goes.
is($one->must(q{SELECT bool_and(lease_detach(name, 'me')) FROM dist_lock WHERE owner IS NOT NULL AND expiry > clock_timestamp() AND session_pid = pg_backend_pid() AND name NOT IN ('endless')}),
	't', 'all are detached by their session') or diag($look->must('SELECT * FROM dist_lock'));
$look->must(q{SELECT lease_detach('kept', 'me'); SELECT lease_break('endless')});
$one->must(q{SELECT lease_try('open', 'me', '1500 ms')});
$one->must(q{BEGIN; SELECT lease_renew('open', 'me', '1 h'), lease_attach('open', 'me')});
$keeper = keeper($look);
sleep 2.6;
is(keeper($look), $keeper, 'while somebody is about to bind one, it stays');
$one->must(q{ROLLBACK});
my $start = time;
ok(gone($look, 10), 'the keeper goes');
cmp_ok(time - $start, '<', 4.2, 'two seconds after the last lease was detached, and a pause');
log_is_quiet($node, $log, 'at the end');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
