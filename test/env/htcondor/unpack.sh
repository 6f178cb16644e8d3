#!/usr/bin/env bash
# Unpacks HTCondor, or apptainer with busybox for images, and the libraries from a suite of Debian:
# unpack.sh SUITE DIRECTORY [condor|apptainer]
#
# Nothing is installed on this machine: no entry in dpkg's database, no other libc, no chroot, no mount. The programs get the
# suite's own loader and an absolute path to its libraries (patchelf), so that jobs inherit no LD_LIBRARY_PATH.
set -euo pipefail

suite=$1
destination=$2
main=${3:-condor}
work=$destination.work
libraries=$destination/usr/lib/x86_64-linux-gnu

fail() {
  echo "$*" >&2
  exit 1
}

for tool in apt-get dpkg-deb patchelf tar awk; do
  command -v "$tool" >/dev/null || fail "$tool is missing: $main is unpacked from Debian packages with it"
done
[ "$(uname -m)" = x86_64 ] || fail "$main is unpacked for x86_64 only, and this machine is $(uname -m)"

. "$(dirname "$0")/../debian-mirror.sh"

# Two environments may share the directory.
exec 9>>"$destination.lock"
flock 9
[ ! -e "$destination.done" ] || exit 0
rm -rf "$work" "$destination"
mkdir -p "$work"/{lists/partial,cache/archives/partial,packages}
# A world of apt's own, in which nothing is installed: so that every library counts as missing.
: >"$work/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $suite main" >"$work/sources.list"
apt=(apt-get -q
  -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
  -o "Dir::State::status=$work/status" -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache"
  -o APT::Install-Recommends=0 -o Acquire::Languages=none -o Acquire::Retries=3
  -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
  -o APT::Update::Post-Invoke::=true -o APT::Sandbox::User=root)

echo "reading the packages of Debian $suite"
"${apt[@]}" update >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "apt-get update failed for $suite"; }
"${apt[@]}" -s install "$main" 2>"$work/log" | awk '/^Inst/ {print $2}' | sort -u >"$work/closure" || true
grep -qx "$main" "$work/closure" || { cat "$work/log" >&2; fail "$main cannot be installed from $suite"; }
# Libraries only: what else would come along serves Python and Perl scripts.
{
  grep -E '^(lib|zlib1g)' "$work/closure" |
    grep -vE '^lib(python|perl|js-|boost|debconf|semanage|sepol|pam|gdbm|readline|date-manip|.*-perl$)'
  echo "$main"
  [ "$main" != apptainer ] || echo busybox-static
} | sort -u >"$work/wanted"
echo "fetching $(wc -l <"$work/wanted") packages"
mapfile -t wanted <"$work/wanted"
(cd "$work/packages" && "${apt[@]}" download "${wanted[@]}" >"$work/log" 2>&1) || { cat "$work/log" >&2; fail "a package could not be fetched"; }

# The links first, so that what older packages have in lib/ lands in usr/lib/.
mkdir -p "$destination"/usr/{bin,sbin,lib,lib64}
for one in bin sbin lib lib64; do ln -s "usr/$one" "$destination/$one"; done
for package in "$work"/packages/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$destination" --keep-directory-symlink --no-same-owner \
    --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale --exclude=./usr/share/javascript
done
[ -e "$libraries/ld-linux-x86-64.so.2" ] || fail "there is no loader in $libraries"
find "$destination/usr" -type f -perm -u+x ! -name '*.so' ! -name '*.so.*' | while read -r program; do
  [ "$(head -c4 "$program" | tr -d '\0')" = $'\x7fELF' ] || continue
  # What is linked statically cannot be changed, and need not be.
  patchelf --set-interpreter "$libraries/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$libraries:$destination/usr/lib" "$program" 2>/dev/null || true
done
rm -rf "$work"
case $main in
  condor) CONDOR_CONFIG=/dev/null "$destination/usr/bin/condor_version" >"$destination.new" ;;
  apptainer)
    # Its two programs look for these from where they are themselves.
    for one in etc var; do
      ln -s "../$one" "$destination/usr/$one"
      ln -s "../../$one" "$destination/usr/lib/$one"
    done
    "$destination/usr/bin/apptainer" --version >"$destination.new"
    ;;
esac
mv "$destination.new" "$destination.done"
