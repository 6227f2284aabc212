# Debian systems in folders, for tests that need another Debian than the one they run on.
# Sourced, by scripts that then call in_namespaces.
# Invariant: whatever ends such a script, no mount, process or file of it stays behind but
# the cache: all of it happens in namespaces of its own.
#   LEASE_CACHE=dir     packages and prepared systems, kept between runs (/var/cache/lease)
#   LEASE_MIRROR=url    a mirror of Debian (else: the one that this machine's apt uses)
repo=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
# shellcheck source=test/harness/lib.bash
. "$repo/test/harness/lib.bash"
cache=${LEASE_CACHE:-/var/cache/lease}
fresh_days=2 # so long a prepared system is taken as it is
passed_on=() # variables for what runs in a system

# in_namespaces GOAL VARIABLES: the calling script goes on as root, with these variables (and
# commas between them), as the first process in namespaces of its own: when it ends, everything
# in them does. What GOAL needs is installed; $tmp is a directory that goes, too.
in_namespaces() {
    local goal=$1 variables=$2 unshared
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "To make a Debian in a folder takes root, or sudo."
        exec sudo --preserve-env="$variables${variables:+,}LEASE_CACHE,LEASE_MIRROR,TMPDIR" bash "$0"
    fi
    if [ -z "${LEASE_DEBIAN_TMP:-}" ]; then
        "$repo/test/harness/deps" "$goal"
        LEASE_DEBIAN_TMP=$(mktemp -d "${TMPDIR:-/tmp}/lease-debian.XXXXXX")
        export LEASE_DEBIAN_TMP
        # shellcheck disable=SC2064 # the directory is known now
        trap "rm -rf '$LEASE_DEBIAN_TMP'" EXIT
        unshare --mount --propagation private --ipc --pid --fork --kill-child=KILL bash "$0" </dev/null &
        unshared=$!
        # shellcheck disable=SC2064 # so is the process
        trap "kill -KILL $unshared; exit 143" HUP INT TERM
        wait "$unshared"
        exit
    fi
    tmp=$LEASE_DEBIAN_TMP
    mount -t proc proc /proc # of this namespace
    mkdir -p "$cache"
    proxies
}

say() { printf '\n=== %s\n' "$*"; }

# What this machine's apt knows: where Debian is, and how to get there.
mirror() {
    local uri
    if [ -z "${LEASE_MIRROR:-}" ]; then
        # shellcheck disable=SC2016 # the names in it are apt's
        uri=$(apt-get indextargets --format '$(ORIGIN)|$(COMPONENT)|$(REPO_URI)|$(RELEASE)' 'Created-By: Packages' 2>/dev/null |
            sed -n 's/^Debian|main|\(.*\)|[a-z]*$/\1/p' | head -n 1)
    fi
    uri=${LEASE_MIRROR:-${uri:-http://deb.debian.org/debian}}
    printf '%s' "${uri%/}"
}

# apt's own settings for the way there: proxies, certificates, clocks.
network_settings() {
    apt-config dump --format '%F "%v";%n' | grep -E '^Acquire::(https?|Check|Retries|Languages|ForceIP)' || true
}

proxies() {
    local proxy=
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    [ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export http_proxy=$proxy https_proxy=${https_proxy:-$proxy}
}

inside() {
    local root=$1
    shift
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
        DEBIAN_FRONTEND=noninteractive "${passed_on[@]}" chroot "$root" "$@" </dev/null
}

mount_all() {
    local root=$1 node
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=755 dev "$root/dev"
    mkdir "$root/dev/shm" "$root/dev/pts"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts" && ln -s pts/ptmx "$root/dev/ptmx"
    for node in null zero full random urandom tty; do
        touch "$root/dev/$node"
        mount --bind "/dev/$node" "$root/dev/$node"
    done
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s fd/0 "$root/dev/stdin" && ln -s fd/1 "$root/dev/stdout" && ln -s fd/2 "$root/dev/stderr"
}

unmount_all() { umount -R "$1/dev" "$1/proc"; }

# The tree as git would clone it, with what is not committed yet.
copy_tree() {
    local to=$1
    mkdir -p "$to"
    if git -C "$repo" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git -c safe.directory="$repo" -C "$repo" ls-files -z --cached --others --exclude-standard
    else
        (cd "$repo" && find . -type f ! -name '*.o' ! -name '*.so' -print0)
    fi | (cd "$repo" && tar --null --ignore-failed-read -T - -cf - 2>/dev/null) | tar -C "$to" -xf -
}

# prepare NAME SUITE COMMAND...: makes a system, runs COMMAND in it, with apt's lists there and
# the tree in /lease, and packs it.
prepare() {
    local root=$tmp/$1 packed=$cache/$1.tar.gz suite=$2 debs=$cache/$2-packages
    shift 2
    mkdir -p "$debs"
    debootstrap --variant=minbase --include=make,ca-certificates --cache-dir="$debs" \
        "$suite" "$root" "$(mirror)" || return
    network_settings >"$root/etc/apt/apt.conf.d/90lease"
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    mount_all "$root"
    mkdir -p "$root/var/cache/apt/archives/partial"
    mount --bind "$debs" "$root/var/cache/apt/archives"
    copy_tree "$root/lease"
    inside "$root" "$@" || return
    inside "$root" apt-get -q autoclean >/dev/null || true
    umount "$root/var/cache/apt/archives"
    rm -rf "$root/lease"
    unmount_all "$root"
    tar -C "$root" -I 'gzip -1' -cf "$packed.part" . && mv "$packed.part" "$packed"
}

# get_system NAME SUITE COMMAND...: a system prepared like that in $tmp/NAME, of this day or nearly
# so; or an older one, if none can be made today.
get_system() {
    local name=$1 suite=$2 packed=$cache/$1.tar.gz log=$tmp/$1.log
    if [ -z "$(find "$packed" -mtime "-$fresh_days" 2>/dev/null)" ]; then
        printf 'Making a Debian %s.\n' "$suite"
        ! prepare "$@" >"$log" 2>&1 || return 0
        show 30 "$log"
        umount -R "$tmp/$name"/{dev,proc,var/cache/apt/archives} 2>/dev/null || true
        rm -rf "${tmp:?}/$name"
        [ -e "$packed" ] || return
        printf 'The Debian %s of %s is used instead.\n' "$suite" "$(date -r "$packed" +%F)"
    fi
    mkdir "$tmp/$name"
    tar -C "$tmp/$name" -xf "$packed"
}

# A prepared system that is to be used: mounted, with the tree in /lease.
enter_system() {
    local root=$tmp/$1
    mount_all "$root"
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    copy_tree "$root/lease"
}
