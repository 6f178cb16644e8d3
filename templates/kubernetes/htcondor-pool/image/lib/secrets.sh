# shellcheck shell=sh
# Part of the entrypoint: mounted secrets become files that HTCondor accepts, its own and for its eyes only.

copy() {
  [ -r "$1" ] || refuse "$1 cannot be read by the user $(id -u): set fsGroup of the Pod to $(id -g), or defaultMode of the volume"
  (umask 077 && cat "$1" >"$2") || cannot_write "$run"
}

# Without the setgid bit that a volume with fsGroup hands down.
make_private() {
  rm -rf "$1"
  { mkdir "$1" && chmod g-s,go= "$1"; } 2>/dev/null || cannot_write "$run"
}

copy_secrets() {
  make_private "$run/fs"
  for one in tokens passwords; do
    make_private "$run/$one.d"
    for secret in "$etc/$one-orig.d"/*; do
      [ ! -f "$secret" ] || copy "$secret" "$run/$one.d/${secret##*/}"
    done
  done
  # thresher gives each worker a token of its own where it can sign one.
  [ ! -f "${THRESHER_PAYLOAD_DIR:-}/token" ] || copy "$THRESHER_PAYLOAD_DIR/token" "$run/tokens.d/token"
  case ${USE_POOL_PASSWORD:-no} in
    yes | true)
      # In this place it is the key of tokens too, as HTCondor has it by default.
      copy "${SEC_PASSWORD_FILE:-$etc/pool_password/password}" "$run/passwords.d/POOL"
      setting SEC_PASSWORD_FILE "$run/passwords.d/POOL"
      setting SEC_DEFAULT_AUTHENTICATION_METHODS 'FS, IDTOKENS, PASSWORD'
      ;;
    no | false) ;;
    *) refuse "USE_POOL_PASSWORD is \"$USE_POOL_PASSWORD\": write yes or no" ;;
  esac
  # HTCondor's programs in the container read it under this name before any setting, and it is not the copy.
  unset SEC_PASSWORD_FILE
}
