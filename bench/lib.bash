# What the benchmarks share: statements, sessions that stay, pgbench, and figures. Sourced, never run.
# Invariant: what is opened here is closed when the script ends.
# shellcheck source=test/harness/lib.bash
. "$(dirname "${BASH_SOURCE[0]}")/../test/harness/lib.bash"
scripts=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/sql
rounds=${BENCH_ROUNDS:-5}
seconds=${BENCH_SECONDS:-4}
dir=$(mktemp -d)
results=$dir/results # part, x (clients, mostly), contender, figure
sessions=() # processes that run beside, and end with us

# shellcheck disable=SC2317 # the EXIT trap
clean_up() {
    [ ${#sessions[@]} -eq 0 ] || kill "${sessions[@]}" 2>/dev/null || true
    wait
    rm -rf "$dir"
}
trap clean_up EXIT

sql() { psql -XAtq -v ON_ERROR_STOP=1 -d "${2:-postgres}" -c "$1"; }

# Opens a session that runs a statement and stays, until leave.
stay() {
    local fifo=$dir/fifo.${#sessions[@]} pipe
    mkfifo "$fifo"
    : >"$dir/session"
    exec {pipe}<>"$fifo" # stays open as long as we are
    psql -XAtq -v ON_ERROR_STOP=1 <"$fifo" >"$dir/session" 2>&1 {pipe}>&- &
    sessions+=($!)
    printf '%s\n' "$1" '\echo ready' >&"$pipe"
    await grep -q ready "$dir/session" || {
        cat "$dir/session"
        die "a session did not start"
    }
    rm "$fifo"
}

# Waits until a command succeeds, for at most five seconds.
await() {
    local try
    for ((try = 0; try < 100; try++)); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.05
    done
    return 1
}

leave() {
    kill "${sessions[-1]}" && { wait "${sessions[-1]}" || true; } 2>/dev/null
    unset 'sessions[-1]'
}

# run_pgbench CLIENTS SCRIPT ARGUMENT...: a run, its report in $dir/pgbench. None may fail.
run_pgbench() {
    local clients=$1 script=$2 threads
    shift 2
    threads=$((clients < $(nproc) ? clients : $(nproc)))
    pgbench -n -M prepared -c "$clients" -j "$threads" -f "$scripts/$script.sql" "$@" >"$dir/pgbench" 2>&1 || {
        cat "$dir/pgbench" >&2
        die "pgbench failed on $script"
    }
    ! grep -q 'number of failed transactions: [1-9]' "$dir/pgbench" || die "transactions of $script failed"
}

# bench CLIENTS SCRIPT [DATABASE]: transactions a second, but for the first second, in which
# many new sessions fill their caches.
bench() {
    run_pgbench "$1" "$2" -P 1 -T $((seconds + 1)) "${3:-postgres}"
    awk '/^progress: / && !warm { warm = $2; before = $2 * $4 }
         /actually processed/ { count = $NF }
         /^tps/ { print (count - before) / (count / $3 - warm) }' "$dir/pgbench"
}

# record PART X CONTENDER FIGURE
record() { printf '%s %s %s %s\n' "$@" >>"$results"; }

# figures PART X CONTENDER: those of all rounds, in ascending order.
figures() { awk -v part="$1" -v x="$2" -v name="$3" '$1 == part && $2 == x && $3 == name { print $4 }' "$results" | sort -g; }

# Of ascending numbers.
median() { awk '{ v[NR] = $1 } END { if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

# middle PART X CONTENDER: the median of the rounds.
middle() { figures "$@" | median; }

part() { printf '\n=== %s\n' "$*"; }

machine() {
    printf '%s, %s cores, Linux %s, %s on %s\n' \
        "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(uname -r)" \
        "$(stat -f -c %T "$PGHOST")" "$(df --output=source "$PGHOST" | tail -n 1)"
    printf 'load: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
    sql "SELECT version()"
    printf '%s rounds of %s s, up to %s threads of clients\n' "$rounds" "$seconds" "$(nproc)"
}

# make_shedlock JOBS [DATABASE]: the table of ShedLock, with jobs that are free and one that is held.
make_shedlock() {
    sql "CREATE TABLE shedlock (name varchar(64) PRIMARY KEY, lock_until timestamptz NOT NULL, locked_at timestamptz NOT NULL, locked_by varchar(255) NOT NULL)" "${2:-postgres}"
    sql "INSERT INTO shedlock SELECT 'job ' || i, now(), now(), 'nobody' FROM generate_series(0, $1 - 1) AS i" "${2:-postgres}"
    sql "INSERT INTO shedlock VALUES ('held', now() + '1 day', now(), 'holder'), ('turn', now(), now(), 'nobody')" "${2:-postgres}"
}
