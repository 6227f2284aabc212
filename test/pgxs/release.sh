#!/bin/bash
# What a release consists of: META.json, scripts that do not change any more, and the
# archive for PGXN, from which PGXN's client installs.
. test/pgxs/lib.bash
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

scripts_are_as_released() {
    sha256sum --check --quiet --strict sql/released.sha256 || {
        echo 'A script that was released must not change: servers have it, and no update would'
        echo 'bring them the change. Write a script from that version to the next instead.'
        echo '(For a version without a tag: make freeze. See "Scripts and versions" in CONTRIBUTING.md.)'
        return 1
    }
}
every_script_is_guarded() { diff <(printf '%s\n' sql/*.sql) <(cut -c 67- sql/released.sha256); }

ok 'META.json keeps to the rules' perl test/pgxs/meta.pl
ok 'scripts are as they were released' scripts_are_as_released
ok 'each script is guarded' every_script_is_guarded

# The archive, of a repository as it would be committed.
copy_sources "$dir/tree"
tree() { git -C "$dir/tree" -c user.name=test -c user.email=test@localhost "$@"; }
archive=$dir/tree/build/$(sed -n 's/^   "version": "\(.*\)",$/lease-\1.zip/p' META.json)
committed() { tree init -q && tree add --all && tree commit -q -m 'test'; }
has_the_sources() {
    diff <(python3 -m zipfile -l "$archive" | sed -n "s#^$(basename "$archive" .zip)/\([^ ]*[^ /]\) .*#\1#p" | sort) \
        <(tree ls-files | grep -vE '^(\.ci/.*|\.git(attributes|ignore))$' | sort)
}
ok 'a repository' committed
ok 'make dist' make -C "$dir/tree" dist
ok 'the archive has all files, in a directory of its name and version' has_the_sources

# A server in a directory of the user's own, as far as installing is concerned.
cat >"$dir/pg_config" <<END
#!/bin/sh
case \$1 in
    --bindir | --libdir | --pkglibdir | --sharedir | --mandir) printf '%s' "$dir/dest" ;;
esac
exec '$PG_CONFIG' "\$@"
END
chmod 755 "$dir/pg_config"
mkdir -p "$dir/dest$("$PG_CONFIG" --libdir)"
files=("$("$PG_CONFIG" --bindir)/leasectl" "$("$PG_CONFIG" --mandir)/man1/leasectl.1"
    "$("$PG_CONFIG" --sharedir)/bash-completion/completions/leasectl")
# Without optimisation: it is not run.
by_pgxn() { MAKEFLAGS="-j$(nproc) -- CXXFLAGS=-O0" pgxn "$1" --pg_config "$dir/pg_config" "$archive"; }
ok 'pgxn install' by_pgxn install
ok 'it installs all files' installed_in "$dir/dest" "${files[@]}"
ok 'pgxn uninstall' by_pgxn uninstall
ok 'no file is left' bash -c "! find '$dir/dest' -type f | grep ."
done_testing
