# Shared by the scripts: brings in what is missing, and sets `node` to the Node 24 of this checkout.
# Sourced, with the working directory at the root of the checkout.

need() {
  command -v "$1" >/dev/null 2>&1 && return
  echo "$(basename "$0"): '$1' is missing; on Debian: apt-get install $2" >&2
  exit 1
}

install_packages() {
  need node nodejs
  need npm npm
  stamp=node_modules/.installed
  if [ ! -e "$stamp" ] || ! cmp -s package-lock.json "$stamp"; then
    echo "installing packages"
    # The lock file decides every version: an old npm under an old Node would choose others.
    npm ci --no-fund --no-audit --loglevel=error
    cp package-lock.json "$stamp"
  fi
  node=node_modules/node/bin/node
  if ! "$node" --version >/dev/null 2>&1; then
    echo "$(basename "$0"): Node 24 did not arrive with the packages: npm must be allowed to run the install script of the package 'node' (npm config get ignore-scripts)" >&2
    exit 1
  fi
  # Tools that start 'node' get this one, whatever the machine has.
  PATH=$PWD/node_modules/.bin:$PATH
  export PATH
}
