# What the scripts beside this file share. Sourced, never run.

die() {
    printf '%s\n' "$@" >&2
    exit 1
}

# Sets PG_CONFIG (absolute) and BINDIR. The server's programs are always called by
# that path: whatever else is called "postgres" in PATH is not ours to run.
find_server() {
    PG_CONFIG=$(command -v "${PG_CONFIG:-pg_config}") || die "no pg_config: say PG_CONFIG=path"
    BINDIR=$("$PG_CONFIG" --bindir)
    export PG_CONFIG BINDIR
}

# Runs a command; a signal to us goes on to it and, when it has ended, ends us, too:
# what our EXIT trap then cleans up is no longer in use.
guarded() {
    local rc=0 signalled=
    "$@" <&0 &
    local child=$!
    # shellcheck disable=SC2064 # this child, whatever $child is by then
    trap "signalled=1; kill -TERM $child 2>/dev/null || true" HUP INT TERM
    wait "$child" || rc=$?
    while kill -0 "$child" 2>/dev/null; do # a signal ended the wait, not the child
        wait "$child" || rc=$?
    done
    trap - HUP INT TERM
    [ -z "$signalled" ] || exit 143
    return "$rc"
}

# The last lines of a file, marked as what they are.
show() {
    local lines=$1 file=$2
    [ -s "$file" ] || return 0
    printf -- '--- %s (last %s lines)\n' "$file" "$lines"
    tail -n "$lines" "$file"
    printf -- '---\n'
}

# clean_copy REPOSITORY DIRECTORY: the sources, also those that are not committed, and nothing that was built.
clean_copy() {
    mkdir -p "$2"
    tar -C "$1" --exclude=./.git --exclude=./build --exclude='*.o' --exclude='*.so' --exclude='*.gc??' \
        -cf - . | tar -C "$2" -xf -
}
