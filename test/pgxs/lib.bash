# What the tests beside this file share. Sourced by them; they run in a copy of the
# repository (test/harness/sandbox).
set -uo pipefail
# shellcheck source=test/harness/tap.bash
. test/harness/tap.bash

# A copy of what is in the repository, without what was built, and what tests wrote.
copy_sources() {
    mkdir -p "$1" && tar --exclude=./.git --exclude='*.o' --exclude='*.so' --exclude='*.gc??' --exclude=./build \
        --exclude=./.flags --exclude=./results --exclude=./output_iso --exclude='./regression.*' \
        -cf - . | tar -C "$1" -xf -
}

make() { command make -j "$(nproc)" "PG_CONFIG=$PG_CONFIG" "$@"; }

# As in the Makefile.
completions=$("$PG_CONFIG" --sharedir)/bash-completion/completions
[[ $("$PG_CONFIG" --bindir) != /usr/* ]] || completions=/usr/share/bash-completion/completions

# Exactly what an installation consists of, under a directory: the extension, and leasectl's
# files, or those that are named instead.
installed_in() {
    local dir=$1 share lib
    shift
    share=$("$PG_CONFIG" --sharedir)
    lib=$("$PG_CONFIG" --pkglibdir)
    [ $# -gt 0 ] || set -- "$("$PG_CONFIG" --bindir)/leasectl" \
        "$("$PG_CONFIG" --mandir)/man1/leasectl.1" "$completions/leasectl"
    diff <(cd "$dir" && find . -type f | sort) <(
        printf '.%s\n' "$lib/lease.so" "$share/extension/lease.control" sql/*--*.sql "$@" |
            sed "s#^\.sql/#.$share/extension/#" | grep -v '^\.none$' | sort
    )
}
