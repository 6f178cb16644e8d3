#!/bin/sh
# install.sh [ROOT]: puts the files beside this script to their places in an image with HTCondor, by default the one it runs in.
# The Containerfile runs it, and so do the tests, which have no podman.
set -eu
# Directories on the way are those of the image.
umask 022
here=$(cd "$(dirname "$0")" && pwd)
root=${1:-}
library=$root/usr/local/libexec/thresher-pool
mkdir -p "$library" "$root/etc/condor/config.d" "$root/etc/condor/more.d"
cp -R "$here/entrypoint.sh" "$here/lib" "$here/roles" "$here"/probes/* "$library/"
cp "$here"/config/*.conf "$root/etc/condor/config.d/"
chmod -R u=rwX,go=rX "$library" "$root/etc/condor/config.d"
for one in entrypoint.sh as-user live pre-stop ready ready-worker; do chmod 755 "$library/$one"; done
mkdir -p "$root/usr/local/bin"
ln -sf ../libexec/thresher-pool/entrypoint.sh "$root/usr/local/bin/htcondor-pool"
for one in as-user live pre-stop ready ready-worker; do ln -sf "../libexec/thresher-pool/$one" "$root/usr/local/bin/"; done
# Secrets are mounted at the two -orig.d. The others are volumes of a Pod, whose root file system is read-only.
mkdir -p "$root/etc/condor/tokens-orig.d" "$root/etc/condor/passwords-orig.d" "$root/etc/condor/pool_password"
for one in run/condor var/log/condor var/lib/condor var/lib/condor/spool var/lib/condor/execute; do
  mkdir -p "$root/$one"
  chown 900:900 "$root/$one"
done
