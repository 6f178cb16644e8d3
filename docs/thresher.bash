# Completion of thresher for bash: source <(thresher completion bash)

_thresher_words() {
  mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
}

# One or more, with commas between them.
_thresher_list() {
  local before=
  if [[ $cur == *,* ]]; then before=${cur%,*},; fi
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$*" -- "${cur##*,}")
}

_thresher_ask() {
  local line
  while IFS= read -r line; do
    if [[ $line == "$cur"* ]]; then COMPREPLY+=("$(printf %q "$line")"); fi
  done < <("${COMP_WORDS[0]/#\~\//$HOME/}" "${globals[@]}" __complete "$1" 2>/dev/null </dev/null)
}

_thresher() {
  local command=thresher value= globals=() cur=${COMP_WORDS[COMP_CWORD]} word i
  if [[ $cur == = ]]; then cur=; fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    # bash takes --output=json for three words.
    if [[ $word == = ]]; then continue; fi
    if [[ -n $value ]]; then
      case $value in
        '--config' | '--state-dir' | '--output') globals+=("$value" "${word/#\~\//$HOME/}") ;;
      esac
      value=
      continue
    fi
    case $word in
      '--config' | '--state-dir' | '--output' | '--for' | '--http-port' | '--queue' | '--status' | '--limit' | '--tail' | '--count' | '--shape' | '--file' | '--secret-file' | '--env' | '--value' | '--reason' | '--worker' | '--ncore' | '--ram' | '--disk' | '--walltime' | '--resource-type' | '--job-type' | '--pilot-type' | '--prod-source-label' | '--namespace' | '--unreported' | '--schedd-host' | '--schedd-name' | '--collector-host' | '--condor-config' | '--auth-method' | '--proxy' | '--cadir' | '--certfile' | '--keyfile' | '--debug' | '--port' | '--host' | '--socket' | '--sidecar-config' | '--kubeconfig' | '--context' | '--directory' | '--trust-domain' | '--lifetime' | '--name' | '--image' | '--security' | '--workers' | '--worker-cpus' | '--worker-memory' | '--storage-class' | '--spool-size' | '--clients' | '--worker-egress' | '--key' | '--key-name' | '--authorization' | '--out' | '--condor-pool' | '--token-directory' | '--deployment' | '--timeout' | '--startd' | '--from' | '--to') value=$word ;;
    esac
    case "$command $word" in
      'thresher run' | 'thresher status' | 'thresher queues' | 'thresher workers' | 'thresher worker' | 'thresher logs' | 'thresher kill' | 'thresher submit' | 'thresher requests' | 'thresher withdraw' | 'thresher pause' | 'thresher resume' | 'thresher drain' | 'thresher sweep' | 'thresher orphans' | 'thresher credentials' | 'thresher credentials check' | 'thresher credentials renew' | 'thresher panda' | 'thresher cacher' | 'thresher cacher list' | 'thresher cacher refresh' | 'thresher check-config' | 'thresher explain' | 'thresher render' | 'thresher htcjob' | 'thresher htcjob crd' | 'thresher htcjob rbac' | 'thresher htcjob manifests' | 'thresher htcjob list' | 'thresher htcjob show' | 'thresher htcjob events' | 'thresher htcjob logs' | 'thresher htcjob import' | 'thresher interlink' | 'thresher pool' | 'thresher pool init' | 'thresher pool manifests' | 'thresher pool token' | 'thresher pool status' | 'thresher pool scale' | 'thresher pool learn' | 'thresher pool unservable' | 'thresher db' | 'thresher db backup' | 'thresher db check' | 'thresher db copy' | 'thresher db prune' | 'thresher completion' | 'thresher man' | 'thresher version') command+=" $word" ;;
    esac
  done
  case "$command:$value" in
    'thresher run:'--for) : ;;
    'thresher run:'--http-port) : ;;
    'thresher status:'--output) _thresher_words table json ;;
    'thresher queues:'--output) _thresher_words table json ;;
    'thresher workers:'--queue) _thresher_ask queues ;;
    'thresher workers:'--status) _thresher_list pending submitted idle ready running finished failed cancelled missed ;;
    'thresher workers:'--limit) : ;;
    'thresher workers:'--output) _thresher_words table json ;;
    'thresher worker:'--output) _thresher_words table json ;;
    'thresher logs:'--tail) : ;;
    'thresher kill:'--queue) _thresher_ask queues ;;
    'thresher kill:'--status) _thresher_list pending submitted idle ready running finished failed cancelled missed ;;
    'thresher submit:'--count) : ;;
    'thresher submit:'--shape) : ;;
    'thresher submit:'--file) compopt -o default ;;
    'thresher submit:'--secret-file) compopt -o default ;;
    'thresher submit:'--env) : ;;
    'thresher submit:'--value) : ;;
    'thresher submit:'--output) _thresher_words table json ;;
    'thresher requests:'--queue) _thresher_ask queues ;;
    'thresher requests:'--limit) : ;;
    'thresher requests:'--output) _thresher_words table json ;;
    'thresher withdraw:'--reason) : ;;
    'thresher pause:'--reason) : ;;
    'thresher drain:'--reason) : ;;
    'thresher orphans:'--output) _thresher_words table json ;;
    'thresher credentials:'--output) _thresher_words table json ;;
    'thresher credentials check:'--output) _thresher_words table json ;;
    'thresher panda:'--output) _thresher_words table json ;;
    'thresher cacher:'--output) _thresher_words table json ;;
    'thresher cacher list:'--output) _thresher_words table json ;;
    'thresher cacher refresh:'--output) _thresher_words table json ;;
    'thresher check-config:'--output) _thresher_words table json ;;
    'thresher explain:'--output) _thresher_words table json ;;
    'thresher render:'--worker) _thresher_ask workers ;;
    'thresher render:'--ncore) : ;;
    'thresher render:'--ram) : ;;
    'thresher render:'--disk) : ;;
    'thresher render:'--walltime) : ;;
    'thresher render:'--resource-type) : ;;
    'thresher render:'--job-type) : ;;
    'thresher render:'--pilot-type) _thresher_words RC ALRB PT PR ;;
    'thresher render:'--prod-source-label) : ;;
    'thresher render:'--output) _thresher_words yaml sdf json ;;
    'thresher htcjob list:'--namespace) : ;;
    'thresher htcjob list:'--output) _thresher_words table json ;;
    'thresher htcjob show:'--output) _thresher_words table json ;;
    'thresher htcjob events:'--output) _thresher_words table json ;;
    'thresher htcjob logs:'--tail) : ;;
    'thresher htcjob import:'--queue) : ;;
    'thresher htcjob import:'--namespace) : ;;
    'thresher htcjob import:'--unreported) _thresher_words succeeded failed ;;
    'thresher htcjob import:'--output) _thresher_words table json ;;
    'thresher interlink:'--schedd-host) : ;;
    'thresher interlink:'--schedd-name) : ;;
    'thresher interlink:'--collector-host) : ;;
    'thresher interlink:'--condor-config) compopt -o default ;;
    'thresher interlink:'--auth-method) : ;;
    'thresher interlink:'--proxy) compopt -o default ;;
    'thresher interlink:'--cadir) : ;;
    'thresher interlink:'--certfile) compopt -o default ;;
    'thresher interlink:'--keyfile) compopt -o default ;;
    'thresher interlink:'--debug) : ;;
    'thresher interlink:'--port) : ;;
    'thresher interlink:'--host) : ;;
    'thresher interlink:'--socket) : ;;
    'thresher interlink:'--sidecar-config) compopt -o default ;;
    'thresher pool init:'--kubeconfig) compopt -o default ;;
    'thresher pool init:'--context) : ;;
    'thresher pool init:'--namespace) : ;;
    'thresher pool init:'--directory) compopt -o dirnames ;;
    'thresher pool init:'--trust-domain) : ;;
    'thresher pool init:'--lifetime) : ;;
    'thresher pool init:'--name) : ;;
    'thresher pool manifests:'--name) : ;;
    'thresher pool manifests:'--image) : ;;
    'thresher pool manifests:'--security) _thresher_words tokens password ;;
    'thresher pool manifests:'--trust-domain) : ;;
    'thresher pool manifests:'--workers) : ;;
    'thresher pool manifests:'--worker-cpus) : ;;
    'thresher pool manifests:'--worker-memory) : ;;
    'thresher pool manifests:'--storage-class) : ;;
    'thresher pool manifests:'--spool-size) : ;;
    'thresher pool manifests:'--clients) : ;;
    'thresher pool manifests:'--worker-egress) : ;;
    'thresher pool manifests:'--kubeconfig) compopt -o default ;;
    'thresher pool manifests:'--context) : ;;
    'thresher pool manifests:'--namespace) : ;;
    'thresher pool token:'--directory) compopt -o dirnames ;;
    'thresher pool token:'--key) compopt -o default ;;
    'thresher pool token:'--key-name) : ;;
    'thresher pool token:'--trust-domain) : ;;
    'thresher pool token:'--authorization) : ;;
    'thresher pool token:'--lifetime) : ;;
    'thresher pool token:'--out) compopt -o default ;;
    'thresher pool status:'--condor-pool) : ;;
    'thresher pool status:'--condor-config) compopt -o default ;;
    'thresher pool status:'--token-directory) compopt -o dirnames ;;
    'thresher pool status:'--output) _thresher_words table json ;;
    'thresher pool scale:'--deployment) : ;;
    'thresher pool scale:'--timeout) : ;;
    'thresher pool scale:'--kubeconfig) compopt -o default ;;
    'thresher pool scale:'--context) : ;;
    'thresher pool scale:'--namespace) : ;;
    'thresher pool scale:'--condor-pool) : ;;
    'thresher pool scale:'--condor-config) compopt -o default ;;
    'thresher pool scale:'--token-directory) compopt -o dirnames ;;
    'thresher pool learn:'--condor-pool) : ;;
    'thresher pool learn:'--condor-config) compopt -o default ;;
    'thresher pool learn:'--token-directory) compopt -o dirnames ;;
    'thresher pool learn:'--startd) : ;;
    'thresher pool learn:'--out) compopt -o default ;;
    'thresher pool unservable:'--output) _thresher_words table json ;;
    'thresher db check:'--output) _thresher_words table json ;;
    'thresher db copy:'--from) _thresher_words sqlite postgresql ;;
    'thresher db copy:'--to) _thresher_words sqlite postgresql ;;
    'thresher version:'--output) _thresher_words table json ;;
    *:--config) compopt -o default ;;
    *:--state-dir) compopt -o dirnames ;;
    *:--output) : ;;
    *:-*) ;;
    'thresher:') if [[ $cur == -* ]]; then _thresher_words --config --state-dir --output --version -h --help; else _thresher_words run status queues workers worker logs kill submit requests withdraw pause resume drain sweep orphans credentials panda cacher check-config explain render htcjob interlink pool db completion man version; fi ;;
    'thresher run:') if [[ $cur == -* ]]; then _thresher_words --for --live --http-port -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher status:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher queues:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher workers:') if [[ $cur == -* ]]; then _thresher_words --queue --status --limit --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher worker:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else _thresher_ask workers; fi ;;
    'thresher logs:') if [[ $cur == -* ]]; then _thresher_words --follow --stderr --job-log --tail -h --help --config --state-dir --output --version; else _thresher_ask workers; fi ;;
    'thresher kill:') if [[ $cur == -* ]]; then _thresher_words --queue --status -h --help --config --state-dir --output --version; else _thresher_ask workers; fi ;;
    'thresher submit:') if [[ $cur == -* ]]; then _thresher_words --count --shape --file --secret-file --env --value --wait --follow --output -h --help --config --state-dir --version; else _thresher_ask queues; fi ;;
    'thresher requests:') if [[ $cur == -* ]]; then _thresher_words --queue --waiting --limit --output -h --help --config --state-dir --version; else _thresher_ask requests; fi ;;
    'thresher withdraw:') if [[ $cur == -* ]]; then _thresher_words --reason -h --help --config --state-dir --output --version; else _thresher_ask requests; fi ;;
    'thresher pause:') if [[ $cur == -* ]]; then _thresher_words --reason -h --help --config --state-dir --output --version; else _thresher_ask queues; fi ;;
    'thresher resume:') if [[ $cur == -* ]]; then _thresher_words -h --help --config --state-dir --output --version; else _thresher_ask queues; fi ;;
    'thresher drain:') if [[ $cur == -* ]]; then _thresher_words --reason -h --help --config --state-dir --output --version; else _thresher_ask queues; fi ;;
    'thresher sweep:') if [[ $cur == -* ]]; then _thresher_words -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher orphans:') if [[ $cur == -* ]]; then _thresher_words --remove --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher credentials:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else _thresher_words check renew; fi ;;
    'thresher credentials check:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher credentials renew:') if [[ $cur == -* ]]; then _thresher_words -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher panda:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher cacher:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else _thresher_words list refresh; fi ;;
    'thresher cacher list:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher cacher refresh:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher check-config:') if [[ $cur == -* ]]; then _thresher_words --strict --server --output -h --help --config --state-dir --version; else _thresher_ask queues; fi ;;
    'thresher explain:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else _thresher_ask queues; fi ;;
    'thresher render:') if [[ $cur == -* ]]; then _thresher_words --worker --ncore --ram --disk --walltime --resource-type --job-type --pilot-type --prod-source-label --output -h --help --config --state-dir --version; else _thresher_ask queues; fi ;;
    'thresher htcjob:') if [[ $cur == -* ]]; then _thresher_words -h --help --config --state-dir --output --version; else _thresher_words crd rbac manifests list show events logs import; fi ;;
    'thresher htcjob crd:') if [[ $cur == -* ]]; then _thresher_words -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher htcjob rbac:') if [[ $cur == -* ]]; then _thresher_words -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher htcjob manifests:') if [[ $cur == -* ]]; then _thresher_words -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher htcjob list:') if [[ $cur == -* ]]; then _thresher_words --namespace --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher htcjob show:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher htcjob events:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher htcjob logs:') if [[ $cur == -* ]]; then _thresher_words --follow --stderr --tail -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher htcjob import:') if [[ $cur == -* ]]; then _thresher_words --dry-run --queue --namespace --unreported --output -h --help --config --state-dir --version; else compopt -o default; fi ;;
    'thresher interlink:') if [[ $cur == -* ]]; then _thresher_words --schedd-host --schedd-name --collector-host --condor-config --auth-method --proxy --cadir --certfile --keyfile --debug --dummy-job --port --host --socket --others-may-reach-it --sidecar-config -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher pool:') if [[ $cur == -* ]]; then _thresher_words -h --help --config --state-dir --output --version; else _thresher_words init manifests token status scale learn unservable; fi ;;
    'thresher pool init:') if [[ $cur == -* ]]; then _thresher_words --kubeconfig --context --namespace --directory --pool-password --trust-domain --lifetime --renew --force --name --apply --dry-run --force-conflicts --print-secrets -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher pool manifests:') if [[ $cur == -* ]]; then _thresher_words --name --image --security --trust-domain --workers --worker-cpus --worker-memory --storage-class --spool-size --clients --worker-egress --kubeconfig --context --namespace --worker-template --apply --dry-run --force-conflicts -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher pool token:') if [[ $cur == -* ]]; then _thresher_words --directory --key --key-name --trust-domain --authorization --lifetime --out --force --print -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher pool status:') if [[ $cur == -* ]]; then _thresher_words --condor-pool --condor-config --token-directory --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher pool scale:') if [[ $cur == -* ]]; then _thresher_words --deployment --timeout --kubeconfig --context --namespace --condor-pool --condor-config --token-directory -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher pool learn:') if [[ $cur == -* ]]; then _thresher_words --condor-pool --condor-config --token-directory --startd --out -h --help --config --state-dir --output --version; else _thresher_ask queues; fi ;;
    'thresher pool unservable:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else :; fi ;;
    'thresher db:') if [[ $cur == -* ]]; then _thresher_words -h --help --config --state-dir --output --version; else _thresher_words backup check copy prune; fi ;;
    'thresher db backup:') if [[ $cur == -* ]]; then _thresher_words --force -h --help --config --state-dir --output --version; else compopt -o default; fi ;;
    'thresher db check:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else compopt -o default; fi ;;
    'thresher db copy:') if [[ $cur == -* ]]; then _thresher_words --from --to -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher db prune:') if [[ $cur == -* ]]; then _thresher_words --dry-run --vacuum -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher completion:') if [[ $cur == -* ]]; then _thresher_words -h --help --config --state-dir --output --version; else _thresher_words bash; fi ;;
    'thresher man:') if [[ $cur == -* ]]; then _thresher_words -h --help --config --state-dir --output --version; else :; fi ;;
    'thresher version:') if [[ $cur == -* ]]; then _thresher_words --output -h --help --config --state-dir --version; else :; fi ;;
  esac
}

complete -F _thresher thresher
