# Shared by the scripts: brings in what is missing, and sets `node` to the Node 24 of this checkout.
# Sourced, with the working directory at the root of the checkout.

missing=()
packages=()
# What shows that each of the missing is there.
proofs=()

fail() {
  echo "$(basename "$0"): $1" >&2
  exit 1
}

# need COMMAND PACKAGE: a command or path, and the Debian package that has it. `bring_in` names all that is missing at once.
need() { has_command "$1" || lack "$1" "$2"; }

# Users other than root have no sbin in their PATH.
has_command() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null 2>&1; }

# need_that PROOF WHAT PACKAGE: what no path names. The function PROOF tells whether it is there.
need_that() { "$1" || lack "$2" "$3" "$1"; }

lack() {
  if [[ " ${missing[*]} " != *" $1 "* ]]; then
    missing+=("$1")
    proofs+=("${3:-has_command $1}")
  fi
  [[ " ${packages[*]} " = *" $2 "* ]] || packages+=("$2")
}

# What the real node of the Kubernetes environment needs. The paths are those of test/env/kubernetes/node.sh.
need_for_node() {
  [ "$(id -u)" = 0 ] || fail "a real Kubernetes node needs root: a kubelet mounts, makes namespaces and sets limits"
  need /usr/bin/containerd containerd
  need runc runc
  need /usr/lib/cni/bridge containernetworking-plugins
  need iptables iptables
  need ip iproute2
  need nsenter util-linux
  need curl curl
  need openssl openssl
  # The image of the tests' Pods holds nothing else: a busybox that loads libraries would not start there.
  if [ ! -x /bin/busybox ] || ldd /bin/busybox >/dev/null 2>&1; then lack /bin/busybox busybox-static; fi
}

# The image of an HTCondor pool is made from Debian packages, without a registry and its tools.
need_for_image() {
  [ "$(id -u)" = 0 ] || fail "the image of a pool needs root: its files have several owners"
  need mmdebstrap mmdebstrap
}

# What makes real proxies, tokens and tickets for the tests of credentials. `bring_in` asks no questions, so krb5-kdc and its
# realm neither; the tests' KDC has a configuration and a port of its own, and ends with them.
need_for_credentials() {
  need openssl openssl
  need voms-proxy-fake voms-clients
  need grid-proxy-init globus-proxy-utils
  need arcproxy nordugrid-arc-client
  need_for_kerberos
}

need_for_kerberos() {
  need krb5kdc krb5-kdc
  need kadmin.local krb5-admin-server
  need kinit krb5-user
}

# HTCondor itself is unpacked, not installed: its package would start daemons on this machine.
need_for_htcondor() {
  need patchelf patchelf
  need dpkg-deb dpkg
  need setpriv util-linux
}

# The package's own database is not used, only its programs.
need_for_postgresql() {
  need psql postgresql-client
  need setpriv util-linux
  need_that has_initdb 'initdb of PostgreSQL' postgresql
}
has_initdb() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

# A pooler before PostgreSQL, and machines whose clocks are wrong. The package's own PgBouncer is not used, only its program.
need_for_failover() {
  need_for_postgresql
  need pgbouncer pgbouncer
  need_that has_libfaketime libfaketime libfaketime
}
has_libfaketime() { compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null; }

# The server itself comes from PyPI into an environment of its own.
need_for_panda() {
  need python3 python3
  need_that has_venv 'venv of python3' python3-venv
  need openssl openssl
  need curl curl
  need_for_postgresql
}
has_venv() { python3 -c 'import venv, ensurepip' 2>/dev/null; }

# Ends the script unless all that was needed is there. THRESHER_INSTALL=apt, as .ci/run sets it, installs what is missing;
# without it nothing outside of this checkout and of caches is changed.
bring_in() {
  [ ${#packages[@]} != 0 ] || return 0
  local what remedy
  what="$(printf "'%s' " "${missing[@]}")missing"
  remedy="apt-get install ${packages[*]}"
  [ "${THRESHER_INSTALL:-}" = apt ] || fail "$what; on Debian: $remedy (with THRESHER_INSTALL=apt this is done here)"
  [ "$(id -u)" = 0 ] || fail "$what, and only root may do: $remedy"
  command -v apt-get >/dev/null || fail "$what, and there is no apt-get; on Debian: $remedy"
  echo "installing Debian packages: ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # Others may be at it: a new machine updates itself.
  local options=(-qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  # Old lists may do, and one source of many that is down is no reason to give up: what matters is whether the packages come.
  apt-get "${options[@]}" update >&2 || echo "$(basename "$0"): apt-get update failed, see above; going on" >&2
  apt-get "${options[@]}" install --yes --no-install-recommends "${packages[@]}" >&2 || fail "$what, and this failed, see above: $remedy"
  hash -r
  local proof
  for proof in "${proofs[@]}"; do
    $proof || fail "$what, though these packages are installed: ${packages[*]}"
  done
  missing=()
  packages=()
  proofs=()
}

# Sees to it that `go` is 1.26 or newer, where there is any. An older one fetches it as Go does by itself since 1.21 where
# GOTOOLCHAIN lets it: as a module, into its own cache, checked by its checksum database. Debian 12's Go is too old for that.
newer_go() {
  local have toolchain
  command -v go >/dev/null || return 0
  have=$(cd / && go env GOVERSION)
  # Development versions name no number.
  [[ $have =~ ^go1\.([0-9]+) && ${BASH_REMATCH[1]} -lt 26 ]] || return 0
  toolchain=golang.org/toolchain@v0.0.1-go1.26.8.$(cd / && go env GOHOSTOS)-$(cd / && go env GOHOSTARCH)
  echo "fetching Go 1.26, since $(command -v go) is $have"
  if ! toolchain=$(cd / && GOTOOLCHAIN=local go mod download -json "$toolchain"); then
    # Where it could be run at all, it says there what is wrong.
    echo "${toolchain:+$toolchain$'\n'}$(basename "$0"): Go 1.26 could not be fetched, see above; install it from https://go.dev/dl" >&2
    return 1
  fi
  [[ $toolchain =~ \"Dir\":\ \"([^\"]+)\" ]] || fail "go mod download named no directory: $toolchain"
  toolchain=${BASH_REMATCH[1]}
  # Modules have no executable files.
  chmod a+x "$toolchain"/bin/* "$toolchain"/pkg/tool/*/*
  unset GOROOT
  export GOTOOLCHAIN=local PATH=$toolchain/bin:$PATH
}

install_packages() {
  need node nodejs
  need npm npm
  bring_in
  stamp=node_modules/.installed
  if ! cmp -s package-lock.json "$stamp" 2>/dev/null; then
    # Two of these scripts at once, as in parallel tests, would install into each other.
    exec 9<.
    ! command -v flock >/dev/null || flock 9
  fi
  if ! cmp -s package-lock.json "$stamp" 2>/dev/null; then
    echo "installing packages"
    # The lock file decides every version: an old npm under an old Node would choose others.
    # Nothing but the runtime has a script that it needs: the npm of Debian 12 would build a database that comes built.
    npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
    npm rebuild node --loglevel=error
    rm -f "$stamp"
    cp package-lock.json "$stamp"
  fi
  exec 9<&-
  node=node_modules/node/bin/node
  if ! "$node" --version >/dev/null 2>&1; then
    fail "Node 24 did not arrive with the packages: npm must be allowed to run the install script of the package 'node' (npm config get ignore-scripts)"
  fi
  # Tools that start 'node' get this one, whatever the machine has.
  PATH=$PWD/node_modules/.bin:$PATH
  export PATH
}
