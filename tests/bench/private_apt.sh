# Shell functions: fetch Debian packages into a directory without touching the system.
#
# Sourced by scripts/deps-qemu-vtime and tests/bench/linux/fetch. Everything stays under
# $PAPT_DIR (lists, archives); the machine's own package database is only read, and so are its
# apt sources, from which the mirror and the keyring are taken. Nothing is installed.
#
# Set PAPT_DIR before the first call. Each function prints one clear line on failure and
# returns non-zero.

# papt_native_source: prints "URI SIGNED_BY SUITE" of the first Debian source of this machine
# that carries the release's own suite. Reads deb822 (.sources) and one-line (.list) files.
papt_native_source()
{
    local codename=$1
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | awk -v suite="$codename" '
        $1 == "deb" {
            key = "-"; i = 2
            if ($2 ~ /^\[/) {
                while (i <= NF) {
                    opt = $i; gsub(/[\[\]]/, "", opt)
                    if (opt ~ /^signed-by=/) { key = substr(opt, 11) }
                    if ($i ~ /\]$/) break
                    i++
                }
                i++
            }
            if ($(i + 1) == suite && !done) { print $i, key; done = 1 }
        }' > "$PAPT_DIR/native"
    [ -s "$PAPT_DIR/native" ] || cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk -v suite="$codename" '
        function flush() {
            if (types ~ /(^| )deb( |$)/ && (" " suites " ") ~ (" " suite " ") && !done) {
                split(uris, u, " "); print u[1], (key == "" ? "-" : key); done = 1
            }
            types = uris = suites = key = ""
        }
        /^#/ { next }
        /^Types:/ { if (types != "") flush(); types = $0; sub(/^Types: */, "", types) }
        /^URIs:/ { uris = $0; sub(/^URIs: */, "", uris) }
        /^Suites:/ { suites = $0; sub(/^Suites: */, "", suites) }
        /^Signed-By:/ { key = $2 }
        /^$/ { flush() }
        END { flush() }' > "$PAPT_DIR/native"
    [ -s "$PAPT_DIR/native" ] || {
        echo "private apt: no apt source of this machine carries suite '$codename'" >&2
        return 1
    }
    cat "$PAPT_DIR/native"
}

# papt_init SUITE...: writes the private source list for the given suites and updates it.
papt_init()
{
    local codename uri key opt suite
    mkdir -p "$PAPT_DIR/lists/partial" "$PAPT_DIR/archives/partial" || return 1
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    [ -n "$codename" ] || { echo "private apt: /etc/os-release names no release" >&2; return 1; }
    read -r uri key < <(papt_native_source "$codename") || return 1
    [ -n "$uri" ] || return 1
    opt=
    [ "$key" = - ] || opt="[signed-by=$key] "
    : > "$PAPT_DIR/sources.list"
    for suite in "$@"; do
        echo "deb ${opt}$uri ${suite/CODENAME/$codename} main" >> "$PAPT_DIR/sources.list"
    done
    papt get update -qq || {
        echo "private apt: could not read the package lists (network?)" >&2
        return 1
    }
}

# papt get|cache ARGS...: apt-get or apt-cache with the private lists.
papt()
{
    local tool=$1
    shift
    "apt-$tool" -o Dir::Etc::SourceList="$PAPT_DIR/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$PAPT_DIR/lists" -o Dir::Cache::archives="$PAPT_DIR/archives" \
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root \
        -o Debug::NoLocking=1 "$@"
}

# papt_missing [-t SUITE] PACKAGE...: names of PACKAGE... and of what they depend on that this
# machine lacks or has older, one a line as name=version. A simulation: nothing is changed.
papt_missing()
{
    papt get -s --no-install-recommends -y install "$@" |
        awk '/^Inst / {
            name = $2; sub(/:.*/, "", name)
            match($0, /\([^ ]+/); print name "=" substr($0, RSTART + 1, RLENGTH - 1)
        }'
}

# papt_unpack DEST NAME=VERSION...: downloads the packages and unpacks them below DEST.
papt_unpack()
{
    local dest=$1 spec deb
    shift
    mkdir -p "$dest" "$PAPT_DIR/debs"
    for spec in "$@"; do
        # apt names files NAME_VERSION_ARCH.deb with ':' written as %3a.
        deb="$PAPT_DIR/debs/${spec%%=*}_$(echo "${spec#*=}" | sed 's/:/%3a/g')"
        ls "$deb"_*.deb >/dev/null 2>&1 ||
            (cd "$PAPT_DIR/debs" && papt get download -qq "$spec") || {
            echo "private apt: download of $spec failed" >&2
            return 1
        }
        dpkg -x "$deb"_*.deb "$dest" || { echo "private apt: cannot unpack $spec" >&2; return 1; }
    done
}
