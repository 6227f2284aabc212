#!/bin/bash
# shellcheck disable=SC2016 # backquotes are what sed and grep look for
# doc/testing.md: each test that it names exists, and each section; each promise names a test.
. test/pgxs/lib.bash
page=doc/testing.md

tests_exist() {
    local name missing=0
    while read -r name; do
        compgen -G "test/${name/#isolation\//isolation/specs/}.*" >/dev/null || { printf '%s\n' "$name" && missing=1; }
    done < <(sed -n 's/^| .* | \(`.*`\) |$/\1/p' "$page" | tr -d '`' | tr ' ' '\n')
    return "$missing"
}

sections_exist() {
    local file section missing=0
    while IFS=: read -r file section; do
        grep -qE "^##? ${section# }\$" "$file" || { printf '%s:%s\n' "$file" "$section" && missing=1; }
    done < <(sed -n 's/^## \(.*\.md:.*\)$/\1/p' "$page")
    return "$missing"
}

promises_have_tests() { ! grep -nE '^\| ' "$page" | grep -vE '\| promise \| tests \||\| --- \|' | grep -vE '\| (`[a-z_]+/[a-z0-9_]+` ?)+ \|$'; }

enough() { [ "$(grep -cE '^\| .* `[a-z_]+/[a-z0-9_]+` \|$' "$page")" -gt 50 ]; }

ok 'it names many promises' enough
ok 'the tests that it names exist' tests_exist
ok 'the sections that it names exist' sections_exist
ok 'each promise names a test' promises_have_tests
done_testing
