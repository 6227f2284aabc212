# TAP from shell. Sourced.
counted=0
failed=0

# ok NAME COMMAND...: what the command prints is shown if it fails.
ok() {
    local name=$1 output
    shift
    counted=$((counted + 1))
    if output=$("$@" 2>&1); then
        printf 'ok %s - %s\n' "$counted" "$name"
    else
        failed=$((failed + 1))
        printf 'not ok %s - %s\n' "$counted" "$name"
        tail -n 100 <<<"$output" | sed 's/^/# /' >&2
    fi
}

# Prints nothing and succeeds, or prints what it was given and fails.
none() {
    local lines
    lines=$(cat)
    [ -z "$lines" ] || { printf '%s\n' "$lines" && false; }
}

# The last line, for prove; or for people, where prove does not count.
done_testing() { printf '1..%s\n' "$counted"; }
totals() {
    printf '\n%s passed, %s failed\n' "$((counted - failed))" "$failed"
    [ "$failed" -eq 0 ]
}
