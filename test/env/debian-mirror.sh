# Sourced by bash scripts that take packages of another suite of Debian than this machine's, which have a function `fail`.

# The mirror that apt already uses, whichever way its sources are written.
mirror() {
  local found
  [ -z "${THRESHER_DEBIAN_MIRROR:-}" ] || { echo "$THRESHER_DEBIAN_MIRROR"; return; }
  found=$(apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk -F'|' '$1 == "Debian" && $2 !~ /security/ {print $2; exit}' || true)
  [ -n "$found" ] ||
    found=$(grep -hoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -1 | tr -d ' ' || true)
  [ -n "$found" ] || fail "apt knows no mirror of Debian: run apt-get update, or name one in THRESHER_DEBIAN_MIRROR"
  echo "${found%/}"
}
