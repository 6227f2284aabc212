#!/bin/bash
# What the tests run under: whatever a test leaves behind is waited for, also where the first process
# does not (a container), and a command's end is told as it was.
. test/pgxs/lib.bash
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
under=test/harness/reaper

status_of() {
    local rc=0
    "$@" || rc=$?
    printf '%s' "$rc"
}
# shellcheck disable=SC2016 # for the inner shell
takes_orphans() {
    "$under" bash -c '(sleep 1 & echo $! >"$0/orphan"); grep -qx "PPid:.$PPID" "/proc/$(cat "$0/orphan")/status"' "$dir"
}
passes_signals_on() {
    local pid
    # shellcheck disable=SC2016
    "$under" bash -c 'trap "exit 5" TERM; echo >"$0/ready"; while :; do sleep 0.05; done' "$dir" &
    pid=$!
    until [ -e "$dir/ready" ]; do sleep 0.05; done
    kill -TERM "$pid"
    wait "$pid"
    [ $? = 5 ]
}
ok 'orphans are waited for' takes_orphans
ok 'an exit status is passed on' test "$(status_of "$under" sh -c 'exit 7')" = 7
# shellcheck disable=SC2016
ok 'and a death by a signal' test "$(status_of "$under" sh -c 'kill -KILL $$')" = 137
ok 'TERM goes on to the command' passes_signals_on
done_testing
