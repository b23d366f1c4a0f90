// Stand-ins for programs that the documents call and a test cannot run. Each does what it can and fails on an unknown argument.
// They are the exceptions from "every command in the documents runs", each with its reason.

export interface StandIn {
  readonly reason: string;
  /** Bash. `$LAB` is a folder with the logs, `$PROJECT` the project. */
  readonly script: string;
}

const unknown = 'echo "$(basename "$0"): not known to the stand-in: $*" >&2; exit 64';

export const standIns: Readonly<Record<string, StandIn>> = {
  kubectl: {
    reason:
      'needs a cluster: a real kubectl reads the command line where the machine has one, overlays are rendered, files are read, verbs and options are checked, logs and answers are those of the running lab, twice where all replicas are asked',
    script: `
if [ -n "$KUBECTL" ]; then
  # The real one, without a server, knows every verb and option.
  said=$("$KUBECTL" --server=http://127.0.0.1:1 --request-timeout=2s "$@" 2>&1 < /dev/null) || true
  if grep -qE 'unknown (shorthand )?(flag|command)|requires? .*(argument|flag)|must specify|[Uu]sage:' <<< "$said"; then echo "$said" >&2; exit 64; fi
fi
verb= ; words=() ; folder= ; file= ; container= ; selector= ; output= ; tail= ; prefix=
while [ $# -gt 0 ]; do
  case "$1" in
    -n) [ $# -ge 2 ] || exit 64; shift 2;;
    -o) output=$2; shift 2;;
    -l) [[ "$2" =~ ^(app.kubernetes.io/name=(subscriptions|account-authz)|account-authz/mode|gateway.envoyproxy.io/owning-gateway-name=subscriptions)$ ]]; selector=$2; shift 2;;
    -c) container=$2; shift 2;;
    -k) folder=$2; shift 2;;
    -f) file=$2; shift 2;;
    --from-file=*) cat "\${1#*=}" > /dev/null; shift;;
    --tail=*) tail=$1; shift;;
    --prefix) prefix=$1; shift;;
    --previous|--containers|--wait=false|--dry-run=client|--overwrite|--since=*|--restart=Never|--image=*|--for=*|--timeout=*) shift;;
    --) shift; break;;
    -*) ${unknown};;
    *) if [ -z "$verb" ]; then verb=$1; else words+=("$1"); fi; shift;;
  esac
done
named() { [[ "$1" =~ ^(deployment|service)/(subscriptions|account-authz)$|^pod/replica-[12]$ ]] || { echo "kubectl: no $1 in the overlays" >&2; exit 64; }; }
case "$verb" in
  apply|replace|delete)
    if [ -n "$folder" ]; then "$KUSTOMIZE" build "$folder" | grep '^kind:' > /dev/null
    elif [ "$file" = - ]; then grep '^kind:' > /dev/null
    elif [ -n "$file" ]; then grep -q '^kind:' "$file"
    elif [ "$verb" = delete ]; then [ "\${#words[@]}" -gt 0 ]
    else exit 64; fi;;
  logs)
    if [ -n "$selector" ]; then
      # Without --tail, kubectl prints the last ten lines of each pod.
      [ -n "$tail" ] || { echo 'kubectl: logs of a selector need --tail' >&2; exit 64; }
      for replica in 1 2; do
        if [ -n "$prefix" ]; then sed "s#^#[pod/replica-$replica/$container] #" "$LAB/$container.log"; else cat "$LAB/$container.log"; fi
      done
    elif [ "\${words[0]}" = pod/ask ]; then "$CURL" -si $CONNECT_TO http://127.0.0.1:8080/api/subscriptions | grep token_missing
    else [[ "\${words[0]}" = pod/* ]]; named "\${words[0]}"; cat "$LAB/$container.log"; fi;;
  exec) [[ "\${words[0]}" = pod/* ]]; named "\${words[0]}"
    if [ "$container $*" = 'istio-proxy pilot-agent request GET stats' ]; then exec "$CURL" -s $CONNECT_TO http://127.0.0.1:9901/stats; fi
    [ "$1" = /nodejs/bin/node ]
    if [ "$2" = -e ]; then code=\${3//127.0.0.1:9192/$ADMIN}; shift 3; exec "$NODE" -e "$code" "$@"; fi
    [ "$2" = /app/dist/main.js ]; shift 2; exec account-authz "\${@//\\/etc\\/account-authz\\/config.yaml/config.yaml}";;
  rollout) [[ "\${words[0]}" =~ ^(status|undo|restart)$ ]]; named "\${words[1]}";;
  port-forward) named "\${words[0]}"; [[ "\${words[1]}" =~ ^[0-9]+(:[0-9]+)?$ ]]
    # In the background it runs until it is ended.
    if [ /dev/stdout -ef /dev/null ]; then exec sleep 60; fi;;
  get) if [ "\${words[*]}" = 'configmap istio' ]; then cat k8s/overlays/istio/mesh-config.yaml
    elif [ "\${words[*]}" = 'configmap account-authz-revocation' ]; then echo '{"jti":"nobody"}'
    elif [ "\${words[*]} $output" = 'pods json' ]; then
      status='{"name":"account-authz","ready":true,"state":{"running":{}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}'
      jq -n --argjson status "$status" '{items: [{metadata: {name: "replica-1"}, spec: {nodeName: "n1"}, status: {initContainerStatuses: [$status]}}]}'
    # In one write, unlike that of a builtin: the reader may take the first line and end.
    elif [ "\${words[*]} $output" = 'pods name' ]; then cat <<< $'pod/replica-1\\npod/replica-2'
    else [ "\${#words[@]}" -gt 0 ]; fi;;
  describe|top) [ "\${words[0]}" = pod ];;
  create) if [ "\${words[0]}" = configmap ]; then echo 'kind: ConfigMap'; else [ "\${words[0]}" = namespace ]; fi;;
  annotate) [ "\${words[0]}" = pod ] && [[ "\${words[1]}" =~ ^[a-z-]+=.+$ ]];;
  run) [ $# -gt 0 ];;
  wait) [[ "\${words[*]}" =~ ^(gateway|envoypatchpolicy)/subscriptions$|^pod/ask$ ]];;
  *) set -- "$verb" "\${words[@]}"; ${unknown};;
esac`,
  },
  egctl: {
    reason:
      'needs a cluster: the options are compared with those that egctl 1.9.1 took; the Envoy of the running lab answers, and the dump is one that egctl made',
    script: `
case "$1 $2 $3" in
  'experimental stats envoy-proxy')
    [ "$4 $5 $6" = '-n envoy-gateway-system -l' ]
    [[ "$7" =~ ^[a-z./-]+=[a-z]+$ ]]
    echo 'envoy-gateway-system/replica-1:'
    exec "$CURL" -s $CONNECT_TO http://127.0.0.1:9901/stats/prometheus;;
  'config envoy-proxy all')
    [[ "$4 $5 $6" =~ ^(POD|replica-[12])\\ -n\\ envoy-gateway-system$ ]]
    exec cat "$PROJECT/test/fixtures/dumps/egctl-patched.yaml";;
  *) exit 1;;
esac`,
  },
  istioctl: {
    reason:
      'needs a cluster: the options are compared with those that istioctl took, and the dump is one of its istiod',
    script: `
[ "$*" = 'proxy-config all POD.subscriptions -o json' ]
exec cat "$PROJECT/test/fixtures/dumps/istiod.yaml"`,
  },
  docker: {
    reason:
      'needs an engine: services, profiles and images that it names are looked for in compose.yaml and Dockerfile',
    script: `
case "$1 $2" in
  'compose '*) shift
    while [ "$1" = --profile ]; do grep -q "profiles: .*$2" compose.yaml; shift 2; done
    verb=$1; shift
    [[ "$verb" =~ ^(up|down|run|restart)$ ]]
    for word in "$@"; do case "$word" in
      --wait|--rm|--no-deps|--exit-code-from) ;;
      -*) ${unknown};;
      check-config) ;;
      *) grep -q "^  $word:" compose.yaml;;
    esac; done;;
  'buildx imagetools') [ "$3" = inspect ]; grep -qF "$4" Dockerfile;;
  'build '*) shift; [ "\${@: -1}" = . ] && [ -f Dockerfile ]
    while [ $# -gt 1 ]; do case "$1" in
      --target) grep -q "AS $2$" Dockerfile; shift 2;;
      -t) [[ "$2" =~ /account-authz(-demo)?: ]]; shift 2;;
      *) ${unknown};;
    esac; done;;
  'push '*|'tag '*) ;;
  'run --rm') [[ "$*" =~ /account-authz: ]];;
  *) ${unknown};;
esac`,
  },
  kind: {
    reason: 'needs a cluster: the images of the manifests are loaded',
    script: `[ "$1 $2" = 'load docker-image' ]; shift 2; for image in "$@"; do grep -rqF "image: $image" k8s; done`,
  },
  cosign: {
    reason: 'needs a published image and the log of its signature',
    script:
      '[ "$1" = verify ] && [ "$3" = --certificate-oidc-issuer ] && [ "$5" = --certificate-identity ] && [ $# = 6 ]',
  },
  npm: {
    reason: 'would run the test suite within itself: scripts are looked for in package.json; try has a test of its own',
    script: `
case "$1" in
  ci) [ -f package-lock.json ];;
  install) [[ "\${@: -1}" =~ ^./account-authz-[0-9.]+.tgz$ ]];;
  test) jq -e '.scripts.test' package.json > /dev/null;;
  run) jq -e --arg name "$2" '.scripts[$name]' package.json > /dev/null
    if [ "$2" = try ]; then mkdir -p try; cp token.txt config.yaml try; fi;;
  *) ${unknown};;
esac`,
  },
  envoy: {
    reason: 'would run until it is stopped, on fixed ports: the real Envoy validates the file',
    script: 'if [ "$1" = --mode ]; then shift 2; fi; exec "$ENVOY" --mode validate "$@" 2> /dev/null',
  },
  useradd: { reason: 'changes the machine', script: '[ "$1" = --system ]' },
  install: {
    reason: 'writes to /etc: the files that it would copy must be there',
    script: 'for word in "$@"; do case "$word" in -*|0*|/etc/*) ;; *) [ -f "$word" ];; esac; done',
  },
  'systemd-analyze': { reason: 'needs the units of the page in /etc', script: '[ "$1" = verify ]' },
  systemctl: { reason: 'needs systemd', script: '[[ "$1" =~ ^(daemon-reload|enable|reload|restart|status)$ ]]' },
  journalctl: { reason: 'needs systemd: the log is that of the running lab', script: 'cat "$LAB/account-authz.log"' },
  'account-authz': {
    reason:
      'serve would run until it is stopped, on fixed ports: it checks its configuration, and a lab has it running; a verdict of explain is no failure; the lab runs a command in its own process, because a start of Node costs half a second of processor time',
    script: `
case "$1" in
  serve) shift; set -- check-config "$@";;
  verify) set -- "\${@//127.0.0.1:8080/$GATEWAY}";;
  -*) exec "$NODE" "$PROJECT/dist/main.js" "$@";;
esac
said=$(mktemp -d "$LAB/XXXXXX")
printf '%s\\0' "$@" > "$said/arguments"
code=$("$CURL" -sf --unix-socket "$LAB/commands" --data-binary @- "http://lab/$(basename "$said")")
cat "$said/stdout"
cat "$said/stderr" >&2
[ "$1 $code" = 'explain 3' ] || [ "$1 $code" = 'explain 4' ] || exit "$code"`,
  },
  node: {
    reason: 'the built product is in the project, not in the copy',
    script: `
if [ "$1" = dist/main.js ]; then shift; exec account-authz "$@"; fi
exec "$NODE" "$@"`,
  },
  curl: {
    reason: 'the documented ports may be in use: the real curl gets the actual ones',
    script: 'exec "$CURL" --max-time 10 $CONNECT_TO "$@"',
  },
};
