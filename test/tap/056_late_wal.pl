# A release commits without waiting for the disk, unless its transaction wrote something else.
# That is decided before the commit; an extension that writes after that, in a callback of its
# own, has its commit flushed all the same.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('late', wal_writer_delay => '10s', autovacuum => 'off');
my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
chomp(my $headers = `$pg_config --includedir-server`);

# Writes a WAL record before each commit while "probe.late" is set.
my $dir = PostgreSQL::Test::Utils::tempdir();
append_to_file("$dir/probe.cpp", <<'CPP');
extern "C" {
#include "postgres.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "utils/guc.h"
PG_MODULE_MAGIC;
void _PG_init(void);
}
static void write_late(XactEvent event, void *) {
    const char *on = GetConfigOption("probe.late", true, false);
    if (event == XACT_EVENT_PRE_COMMIT && on != nullptr && strcmp(on, "yes") == 0)
        XLogRestorePoint("probe");
}
void _PG_init(void) { RegisterXactCallback(write_late, nullptr); }
CPP
system_or_bail('g++', '-shared', '-fPIC', '-Wno-register', '-isystem', $headers, '-o', "$dir/probe.so", "$dir/probe.cpp");

my $session = Lease::Session->connect($node);
$session->must("LOAD '$dir/probe.so'"); # before lease: callbacks run from the last to the first

# What is in the WAL and not on the disk, after a transaction that released.
sub unflushed
{
	my ($probe) = @_;
	$session->must(q{SELECT lease_try('job', 'me', '1 h')});
	$session->must("SET probe.late = '$probe'");
	$session->must(q{SELECT lease_release('job', 'me')});
	$session->must("SET probe.late = 'no'");
	return $session->must('SELECT pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn()');
}

cmp_ok(unflushed('no'), '>', 0, 'a release does not wait for the disk');
is(unflushed('yes'), 0, 'it does if somebody wrote after that was decided');
cmp_ok(unflushed('no'), '>', 0, 'the next does not again');
is($session->must('SHOW synchronous_commit'), 'on', 'the setting is as it was');
$session->must('SET synchronous_commit = off');
cmp_ok(unflushed('yes'), '>', 0, 'what the session says holds for what it is about');
$session->quit;
$node->stop;
done_testing();
