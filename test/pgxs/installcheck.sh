#!/bin/bash
# make installcheck, as PGXS's users know it: on a running server, twice in a row, and
# from a directory elsewhere (one suite shows that).
. test/pgxs/lib.bash
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

if [ "${1:-}" != running ]; then
    # The encoding of a cluster that was made without a locale, as in a container.
    SERVER_ENCODING=SQL_ASCII exec test/harness/with-server "$0" running
fi
tree=$PWD
ok 'make installcheck' make installcheck
ok 'make installcheck again' make installcheck
cd "$dir" || exit
ok 'make -f elsewhere installcheck' make -f "$tree/Makefile" installcheck ISOLATION=
done_testing
