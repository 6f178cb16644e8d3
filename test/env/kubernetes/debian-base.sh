#!/usr/bin/env bash
# The first layer of an image: Debian with packages, as a Containerfile has apt-get make it. What follows the packages goes to mmdebstrap.
#   debian-base.sh SUITE TARGET.tar PACKAGE,PACKAGE [--customize-hook=...]
set -euo pipefail
suite=$1
target=$2
packages=$3
shift 3
fail() {
  echo "$*" >&2
  exit 1
}
. "$(dirname "$0")/../debian-mirror.sh"
from=$(mirror)
mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" \
  --aptopt='APT::Install-Recommends "0"' --aptopt='Acquire::Retries "3"' --aptopt='Acquire::Languages "none"' \
  --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' "$@" \
  "$suite" "$target.unfinished.tar" "$from" || fail "Debian $suite with $packages could not be unpacked from $from, see above"
mv "$target.unfinished.tar" "$target"
