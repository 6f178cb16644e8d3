#!/usr/bin/env bash
# One real Kubernetes node (kubelet, kube-proxy, containerd, runc, CNI bridge) with its own small control plane. Called by node.ts, which
# says where everything is: STATE, KBIN, PORT, EPORT, NETID.
#   node.sh start|purge|ctr ...
# containerd, kubelet, shims and containers run in private mount+pid+net namespaces whose init is one
# supervisor process: killing that one pid ends them all and takes bridge, veth, NAT rules, ip_forward,
# overlay/tmpfs mounts and netns with it.  The host's sysctls and iptables are never touched.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
STATE=${STATE:?directory of its own, absolute, not below /run, /var/lib or /var/log}
KBIN=${KBIN:?directory with kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy etcd}
CTDBIN=${CTDBIN:-/usr/bin}                 # containerd containerd-shim-runc-v2 ctr
CNIBIN=${CNIBIN:-/usr/lib/cni}
PORT=${PORT:?port of the API server} EPORT=${EPORT:?port of etcd} EPEERS=${EPEERS:?port of its peers} NETID=${NETID:?second number of its network, 10.NETID.0.0}
NODE=${NODE:-real-node-0}
HOSTIP=10.$NETID.255.1 NODEIP=10.$NETID.255.2 PODNET=10.$NETID.0.0/24 VH=kn${NETID}h VN=kn${NETID}n CG=/kubenode-$NETID
case $(uname -m) in x86_64) ARCH=amd64 ;; aarch64) ARCH=arm64 ;; *) ARCH=$(uname -m) ;; esac
S=$STATE
# get PATH: of the API, as its administrator
get() { curl -sf --max-time 5 --cacert "$S/pki/ca.crt" --cert "$S/pki/admin.crt" --key "$S/pki/admin.key" "https://127.0.0.1:$PORT$1"; }
CTRS="$CTDBIN/ctr -a $S/containerd.sock -n k8s.io"

# alive NAME: the pid file names a live process that still is the one we started (start time compared)
stime() { local st; st=$(cat "/proc/$1/stat" 2>/dev/null) || return 1; st=${st##*) }; set -- $st; echo "${20}"; }
alive() { [ -f "$S/run/$1.pid" ] || return 1; local p t; read -r p t <"$S/run/$1.pid"; [ "$(stime "$p")" = "$t" ] && [ "$(awk '/^State/{print $2}' /proc/$p/status)" != Z ]; }
pid() { local p t; read -r p t <"$S/run/$1.pid"; echo "$p"; }
spawn() { local n=$1; shift; setsid nohup "$@" >>"$S/log/$n.log" 2>&1 </dev/null & local p=$!; echo "$p $(stime $p)" >"$S/run/$n.pid"; }
stopone() { alive "$1" || { rm -f "$S/run/$1.pid"; return 0; }; local p; p=$(pid "$1"); kill -"${2:-TERM}" "$p" 2>/dev/null || :; for _ in $(seq 150); do alive "$1" || break; sleep .1; done; if alive "$1"; then kill -KILL "$p"; sleep .2; fi; rm -f "$S/run/$1.pid"; }

# die WHAT LOG...: with the ends of logs, which a stop removes
die() { local l; echo "$1" >&2; shift; for l; do [ -s "$S/log/$l.log" ] && { echo "$S/log/$l.log ends:"; tail -n 15 "$S/log/$l.log"; } >&2; done; exit 1; }

mkpki() {
  [ -f $S/pki/done ] && return; cd $S/pki
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -days 3650 -subj /CN=kube-ca 2>/dev/null
  mk() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $1.key -out $1.csr -subj "$2" 2>/dev/null
         openssl x509 -req -in $1.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -out $1.crt -extfile <(printf "subjectAltName=$3\nextendedKeyUsage=serverAuth,clientAuth") 2>/dev/null; }
  mk apiserver /CN=kube-apiserver "IP:127.0.0.1,IP:10.96.0.1,IP:$HOSTIP,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
  mk admin /O=system:masters/CN=admin DNS:admin
  mk kubelet-client /O=system:masters/CN=apiserver-kubelet-client DNS:apiserver   # apiserver -> kubelet
  mk node "/O=system:nodes/CN=system:node:$NODE" "IP:$NODEIP,DNS:$NODE"            # kubelet client AND serving cert
  openssl genrsa -out sa.key 2048 2>/dev/null; openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null; touch done; cd - >/dev/null
}
mkkubeconfig() { # file server user
  printf 'apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: "%s", certificate-authority: %s/pki/ca.crt}}]\nusers: [{name: u, user: {client-certificate: %s/pki/%s.crt, client-key: %s/pki/%s.key}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n' "$2" $S $S $3 $S $3 >"$1"; }

control_plane() {
  mkpki; mkkubeconfig $S/kubeconfig https://127.0.0.1:$PORT admin; mkkubeconfig $S/node.kubeconfig https://$HOSTIP:$PORT node
  mkkubeconfig $S/proxy.kubeconfig https://$HOSTIP:$PORT admin
  alive etcd || spawn etcd $KBIN/etcd --data-dir $S/etcd --listen-client-urls http://127.0.0.1:$EPORT --advertise-client-urls http://127.0.0.1:$EPORT --listen-peer-urls http://127.0.0.1:$EPEERS --initial-advertise-peer-urls http://127.0.0.1:$EPEERS --initial-cluster default=http://127.0.0.1:$EPEERS --unsafe-no-fsync
  # 0.0.0.0 so that the kubelet's network namespace reaches it at $HOSTIP over the veth
  alive apiserver || spawn apiserver $KBIN/kube-apiserver --etcd-servers=http://127.0.0.1:$EPORT --secure-port=$PORT --bind-address=0.0.0.0 --advertise-address=$HOSTIP --cert-dir=$S/pki \
    --tls-cert-file=$S/pki/apiserver.crt --tls-private-key-file=$S/pki/apiserver.key --client-ca-file=$S/pki/ca.crt --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file=$S/pki/sa.pub --service-account-signing-key-file=$S/pki/sa.key --service-cluster-ip-range=10.96.0.0/16 --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
    --allow-privileged=true --kubelet-certificate-authority=$S/pki/ca.crt --kubelet-client-certificate=$S/pki/kubelet-client.crt --kubelet-client-key=$S/pki/kubelet-client.key --kubelet-preferred-address-types=InternalIP ${APIARGS:-}
  for _ in $(seq 300); do get /readyz >/dev/null 2>&1 && break; alive apiserver || die "kube-apiserver of the node ended" etcd apiserver; sleep .2; done
  alive kcm || spawn kcm $KBIN/kube-controller-manager --kubeconfig=$S/kubeconfig --leader-elect=false --service-account-private-key-file=$S/pki/sa.key --root-ca-file=$S/pki/ca.crt --use-service-account-credentials=false --secure-port=0 '--controllers=*,-nodeipam,-route,-service'
  printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: %s/kubeconfig}\n' $S >$S/sched.yaml
  alive sched || spawn sched $KBIN/kube-scheduler --config $S/sched.yaml --secure-port=0
}

ociimage() { # rootfs-dir ref entrypoint-json cmd-json out.tar : OCI archive with a single layer
  local d=$S/oci.$$ diff lay cfg man; mkdir -p $d/blobs/sha256
  tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf $d/layer .
  diff=$(sha256sum <$d/layer | cut -c1-64); gzip -n1 $d/layer; lay=$(sha256sum <$d/layer.gz | cut -c1-64); mv $d/layer.gz $d/blobs/sha256/$lay
  put() { local h; h=$(sha256sum <$d/x | cut -c1-64); mv $d/x $d/blobs/sha256/$h; echo $h; }; size() { stat -c %s $d/blobs/sha256/$1; }
  printf '{"architecture":"%s","os":"linux","config":{"Env":["PATH=/bin:/usr/bin:/sbin:/usr/sbin"],"Entrypoint":%s,"Cmd":%s},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created_by":"node.sh"}]}' $ARCH "$3" "$4" $diff >$d/x; cfg=$(put)
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:%s","size":%s}]}' $cfg $(size $cfg) $lay $(size $lay) >$d/x; man=$(put)
  printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"platform":{"architecture":"%s","os":"linux"},"annotations":{"io.containerd.image.name":"%s"}}]}' $man $(size $man) $ARCH "$2" >$d/index.json
  echo '{"imageLayoutVersion":"1.0.0"}' >$d/oci-layout; tar -C $d -cf "$5" oci-layout index.json blobs; rm -rf $d
}
mkimages() {
  [ -f $S/images/busybox.tar ] && return; local r=$S/rootfs b
  mkdir -p $r/p/bin $r/b/{bin,etc,dev,proc,sys,root,home,tmp,var/tmp,usr/bin,sbin}; chmod 1777 $r/b/tmp $r/b/var/tmp
  cp /bin/busybox $r/p/bin/; cp /bin/busybox $r/b/bin/; for b in $(/bin/busybox --list); do [ $b = busybox ] || ln -sf busybox $r/b/bin/$b; done
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >$r/b/etc/passwd; printf 'root:x:0:\nnobody:x:65534:\n' >$r/b/etc/group
  ociimage $r/p localhost/pause:1 '["/bin/busybox","sleep","2147483647"]' null $S/images/pause.tar
  ociimage $r/b docker.io/library/busybox:latest null '["sh"]' $S/images/busybox.tar; rm -rf $r
}

# An overlay cannot lie on an overlay, as the root of a container often is: there images are copied instead, which takes
# longer and more room.
snapshotter() { local d=$S/probe; mkdir -p $d/{lower,upper,work,merged}
  if unshare --mount --propagation private mount -t overlay -o lowerdir=$d/lower,upperdir=$d/upper,workdir=$d/work overlay $d/merged 2>/dev/null; then echo overlayfs; else echo native; fi
  rm -rf $d; }

mkconfig() { local snapshotter; snapshotter=$(snapshotter)
  cat >$S/cni/10-bridge.conflist <<E
{"cniVersion":"1.0.0","name":"kn","plugins":[{"type":"bridge","bridge":"kn0","isGateway":true,"ipMasq":true,"ipam":{"type":"host-local","ranges":[[{"subnet":"$PODNET"}]],"routes":[{"dst":"0.0.0.0/0"}],"dataDir":"$S/ipam"}},{"type":"portmap","capabilities":{"portMappings":true}}]}
E
  if $CTDBIN/containerd --version | grep -q ' v\?1\.'; then cat >$S/containerd.toml <<E
version = 2
root = "$S/ctd"
state = "$S/ctdrun"
[grpc]
  address = "$S/containerd.sock"
[ttrpc]
  address = "$S/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "$S/opt"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "localhost/pause:1"
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshotter"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$CNIBIN"
    conf_dir = "$S/cni"
E
  else cat >$S/containerd.toml <<E
version = 3
root = "$S/ctd"
state = "$S/ctdrun"
[grpc]
  address = "$S/containerd.sock"
[ttrpc]
  address = "$S/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "$S/opt"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "$snapshotter"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "localhost/pause:1"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["$CNIBIN"]
    conf_dir = "$S/cni"
E
  fi
  cat >$S/kubelet.yaml <<E
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODEIP
readOnlyPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $S/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $S/pki/node.crt
tlsPrivateKeyFile: $S/pki/node.key
containerRuntimeEndpoint: unix://$S/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: $CG
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
podLogsDir: $S/pods-logs
volumePluginDir: $S/volplug
resolvConf: $S/resolv.conf
clusterDNS: [$HOSTIP]
clusterDomain: cluster.local
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
imageGCHighThresholdPercent: 100
serializeImagePulls: false
nodeStatusUpdateFrequency: 5s
syncFrequency: 10s
E
  # Pods share a bridge: an answer that went straight back to a Pod would come from another address than the Service's. So all
  # goes by way of the gateway, whether the host has br_netfilter or not.
  # The limits of conntrack are the host's: they stay what they are.
  cat >$S/proxy.yaml <<E
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: $NODE
clientConnection: {kubeconfig: $S/proxy.kubeconfig}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {masqueradeAll: true}
E
  echo "nameserver $HOSTIP" >$S/resolv.conf
  echo "nameserver 127.0.0.1" >$S/fake/resolv.conf; echo 1 >$S/fake/overcommit_memory; echo 10 >$S/fake/panic; echo 1 >$S/fake/panic_on_oops
  # init of the namespaces; runs as pid 1 in there
  cat >$S/super.sh <<E
#!/bin/bash
export PATH=$CTDBIN:\$PATH:/usr/sbin:/sbin
mount -t tmpfs tmpfs /run; mkdir -p /run/netns; mount -t tmpfs tmpfs /var/log
mount -t overlay -o lowerdir=/var/lib,upperdir=$S/varlib/up,workdir=$S/varlib/work overlay /var/lib 2>/dev/null || mount -t tmpfs tmpfs /var/lib
# kubelet insists on these kernel-wide sysctls; give it look-alikes instead of changing the host
mount --bind $S/fake/resolv.conf /etc/resolv.conf    # image pulls fail at once instead of after a DNS timeout
mount --bind $S/fake/overcommit_memory /proc/sys/vm/overcommit_memory
mount --bind $S/fake/panic /proc/sys/kernel/panic; mount --bind $S/fake/panic_on_oops /proc/sys/kernel/panic_on_oops
ip link set lo up
for i in \$(seq 100); do ip addr show dev $VN 2>/dev/null | grep -q $NODEIP && break; sleep .05; done
echo 1 >/proc/sys/net/ipv4/ip_forward
for i in /proc/sys/net/bridge/bridge-nf-call-iptables; do [ ! -e \$i ] || echo 0 >\$i; done
$CTDBIN/containerd -c $S/containerd.toml >>$S/log/containerd.log 2>&1 & C=\$!
for i in \$(seq 200); do $CTRS version >/dev/null 2>&1 && break; sleep .1; done
for i in pause busybox; do $CTRS images import $S/images/\$i.tar >>$S/log/import.log 2>&1; done
$CTRS images label localhost/pause:1 io.cri-containerd.pinned=pinned >/dev/null 2>&1
$KBIN/kubelet --config=$S/kubelet.yaml --kubeconfig=$S/node.kubeconfig --node-ip=$NODEIP --hostname-override=$NODE --root-dir=$S/kubelet --cert-dir=$S/kubelet/pki >>$S/log/kubelet.log 2>&1 & K=\$!
$KBIN/kube-proxy --config $S/proxy.yaml >>$S/log/kube-proxy.log 2>&1 & P=\$!
trap 'kill \$K \$C \$P; wait \$K \$C \$P; exit 0' TERM INT
while :; do wait -n \$K \$C \$P; kill -0 \$K 2>/dev/null && kill -0 \$C 2>/dev/null && kill -0 \$P 2>/dev/null || { echo "kubelet, containerd or kube-proxy ended"; exit 1; }; done
E
  chmod +x $S/super.sh
}
# Only what a kubelet needs must succeed.
cgdown() { local c s=/sys/fs/cgroup/cgroup.subtree_control; for c in $(cat /sys/fs/cgroup/cgroup.controllers); do echo "+$c" >$s || :; done 2>/dev/null; for c in cpu cpuset memory pids; do grep -qw $c $s || return 1; done; }
cgmk() { local c
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    # In a container our root is not the machine's: it hands its controllers down only when no process is left in it itself.
    if [ -e /sys/fs/cgroup/cgroup.type ] && ! cgdown; then mkdir -p /sys/fs/cgroup/init; while read -r c; do echo $c >/sys/fs/cgroup/init/cgroup.procs || :; done 2>/dev/null </sys/fs/cgroup/cgroup.procs; fi
    cgdown || die "the cgroup controllers cpu, cpuset, memory and pids cannot be handed down in /sys/fs/cgroup: a container must be privileged for that"
    mkdir -p /sys/fs/cgroup$CG; return
  fi
  for c in /sys/fs/cgroup/*/; do [ -e $c/tasks ] || continue; mkdir -p $c$CG; [ -e $c$CG/cpuset.cpus ] && { cat $c/cpuset.cpus >$c$CG/cpuset.cpus; cat $c/cpuset.mems >$c$CG/cpuset.mems; }; done; return 0; }
cgrm() { local c; for c in /sys/fs/cgroup/ /sys/fs/cgroup/*/; do [ -d $c$CG ] && find $c$CG -depth -type d -exec rmdir {} \; 2>/dev/null; done; return 0; }

start() {
  mkdir -p $S/{run,log,pki,etcd,cni,ctd,ctdrun,kubelet,images,pods-logs,volplug,opt,fake,varlib/up,varlib/work}; chmod 700 $S $S/etcd $S/pki
  control_plane
  if ! alive super; then
    mkimages; mkconfig; cgrm; cgmk; rm -rf $S/ipam $S/ctdrun/*
    spawn super unshare --mount --pid --net --fork --kill-child --mount-proc --propagation private $S/super.sh
    local p c; p=$(pid super)
    for _ in $(seq 100); do c=$(cat /proc/$p/task/$p/children 2>/dev/null || :); c=${c%% *}; [ -n "$c" ] && [ "$(readlink /proc/$c/ns/net)" != "$(readlink /proc/self/ns/net)" ] && break; sleep .05; done
    ip link add $VH type veth peer name $VN netns $c
    ip addr add $HOSTIP/30 dev $VH; ip link set $VH up
    nsenter -t $c -n sh -c "ip addr add $NODEIP/30 dev $VN; ip link set $VN up; ip route add default via $HOSTIP"
    ip route replace $PODNET via $NODEIP
  fi
  # through the apiserver to the kubelet (client cert, serving cert, webhook authz), not the maybe stale Ready condition alone
  for _ in $(seq 300); do [ "$(get /api/v1/nodes/$NODE/proxy/healthz)" = ok ] && break; alive super || die "the node ended" super containerd kubelet kube-proxy; sleep .1; done
  for _ in $(seq 600); do ready && break; alive super || die "the node ended" super containerd kubelet kube-proxy; sleep .1; done
  ready || die "the node does not get ready" super containerd kubelet
  for _ in $(seq 100); do get /api/v1/namespaces/default/serviceaccounts/default >/dev/null && break; sleep .1; done
}
ready() { get /api/v1/nodes/$NODE/status | tr -d ' \n' | grep -q '"type":"Ready","status":"True"'; }
stop() {
  stopone super KILL    # unshare --kill-child: pid 1 of the namespace dies, and with it every process in it
  for _ in $(seq 50); do ip link show $VH >/dev/null 2>&1 || break; sleep .1; done; ip link del $VH 2>/dev/null || :
  for n in sched kcm apiserver etcd; do stopone $n; done
  for _ in $(seq 30); do cgrm; ls -d /sys/fs/cgroup$CG /sys/fs/cgroup/*$CG >/dev/null 2>&1 || break; sleep .1; done
}
case ${1:-} in
  start) start ;;
  purge) stop; rm -rf "$S" ;;
  ctr) shift; exec $CTRS "$@" ;;
  *) echo "usage: $0 start|purge|ctr ..." >&2; exit 2 ;;
esac
