#!/bin/bash
# The ways that PGXS's users build: in place, elsewhere, into DESTDIR; what is built
# stays within the rules for C++ in the server.
. test/pgxs/lib.bash
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

builds_without_warning() {
    make "$@" >"$dir/log" 2>&1 || {
        cat "$dir/log"
        return 1
    }
    ! grep -A 5 -i 'warning' <(sed 's/-W[^ ]*//g' "$dir/log")
}

has_no_built_files() { diff -r "$1" "$dir/clean"; }

# Nothing to do: no compiler, no linker.
does_nothing() {
    local output
    output=$(make -s "$@") && printf '%s' "$output" && [ -z "$output" ]
}

# In place.
copy_sources "$dir/clean"
copy_sources "$dir/here"
cd "$dir/here" || exit
ok 'make, without a warning' builds_without_warning
ok 'make again does nothing' does_nothing
touch src/core/tenure.hpp
ok 'a header of the core is a dependency' bash -c "! make -q PG_CONFIG='$PG_CONFIG'"
ok 'make install DESTDIR=' make install DESTDIR="$dir/dest-here"
ok 'it installs these files' installed_in "$dir/dest-here"
ok 'the manual page is there' grep -q 'leasectl' "$dir/dest-here$("$PG_CONFIG" --mandir)/man1/leasectl.1"
ok 'make install where a program goes elsewhere' make install DESTDIR="$dir/dest-local" \
    bindir=/opt/bin mandir=/opt/man completionsdir=/opt/completions
ok 'it goes there' installed_in "$dir/dest-local" \
    /opt/bin/leasectl /opt/man/man1/leasectl.1 /opt/completions/leasectl
ok 'make uninstall' make uninstall DESTDIR="$dir/dest-local" \
    bindir=/opt/bin mandir=/opt/man completionsdir=/opt/completions
ok 'no file is left' bash -c "! find '$dir/dest-local' -type f | grep ."
ok 'without scdoc' make install SCDOC= DESTDIR="$dir/dest-plain"
ok 'all but the manual page is installed' installed_in "$dir/dest-plain" \
    "$("$PG_CONFIG" --bindir)/leasectl" "$completions/leasectl"
ok 'without the headers of libpq' make install includedir=/none DESTDIR="$dir/dest-server"
ok 'all but leasectl is installed' installed_in "$dir/dest-server" none

# Elsewhere: by -f while the tree is built too, by other flags (none of that may get
# in), and by VPATH= with the Makefile linked.
mkdir "$dir/f" "$dir/vpath"
cd "$dir/f" || exit
other=(WERROR=1 CXXFLAGS=-O1 -f "$dir/here/Makefile")
ok 'make -f elsewhere, WERROR=1' make "${other[@]}"
ok 'it has a library of its own' test -e lease.so
ok 'again, it does nothing' does_nothing "${other[@]}"
ok 'make -f install DESTDIR=' make "${other[@]}" install DESTDIR="$dir/dest-f"
cd "$dir/vpath" || exit
ln -s "$dir/clean/Makefile" .
ok 'make VPATH=' builds_without_warning VPATH="$dir/clean"
ok 'make VPATH= install DESTDIR=' make VPATH="$dir/clean" install DESTDIR="$dir/dest-vpath"
cd "$dir/here" || exit
ok 'make clean' make clean
ok 'it leaves the sources only' has_no_built_files "$dir/here"
ok 'make -f installs the same files' installed_in "$dir/dest-f"
ok 'make VPATH= installs the same files' installed_in "$dir/dest-vpath"
ok 'make -f elsewhere clean' make -C "$dir/f" -f "$dir/here/Makefile" clean
ok 'nothing is left there but directories' bash -c "! find '$dir/f' -type f -o -type l | grep ."

# The library: no exceptions, no run-time types, no guarded statics, no heap of C++;
# only what the server looks for is exported.
lib=$dir/vpath/lease.so
undefined_is_clean() { ! nm -D --undefined-only "$lib" | grep -E ' (_Zn[wa]|_Zd[la]|__cxa_(throw|guard|allocate|begin_catch|pure)|_ZSt[0-9]+__throw|__gxx_personality)'; }
exports_are_entry_points() {
    ! nm -D --defined-only "$lib" | cut -d ' ' -f 3 |
        grep -vE "^(Pg_magic_func|_PG_init|(pg_finfo_)?lease_[a-z_]+${COVERAGE:+|__gcov_.*|mangle_path})\$"
}
ok 'the library needs nothing of C++ that throws or allocates' undefined_is_clean
ok 'the library exports its entry points only' exports_are_entry_points
done_testing
