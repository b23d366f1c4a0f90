#!/usr/bin/env bash
# Prints the two Secrets that the overlays service and envoy-gateway need, with certificates that last 30 days. For a trial: in
# production they come from cert-manager or from whatever issues your certificates, under the same names and keys.
# usage: k8s/make-trial-certificates.sh | kubectl apply -n subscriptions -f -        needs openssl
# Each side is vouched for by an authority of its own, whose key is thrown away: nobody else gets a certificate of it.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"

certify() { # NAME EXTENDED_KEY_USAGE
  openssl ecparam -name prime256v1 -genkey -noout -out "$1-ca.key"
  openssl req -x509 -new -key "$1-ca.key" -days 30 -subj "/CN=$1 trial authority" -out "$1-ca.crt" \
    -addext 'basicConstraints=critical,CA:TRUE,pathlen:0' -addext 'keyUsage=critical,keyCertSign'
  openssl ecparam -name prime256v1 -genkey -noout -out "$1-ec.key"
  openssl pkcs8 -topk8 -nocrypt -in "$1-ec.key" -out "$1.key"
  openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
  printf 'subjectAltName=DNS:%s\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=%s\n' "$1" "$2" > "$1.ext"
  openssl x509 -req -in "$1.csr" -CA "$1-ca.crt" -CAkey "$1-ca.key" -CAcreateserial -days 30 -extfile "$1.ext" -out "$1.crt" 2>/dev/null
}

secret() { # NAME CERTIFICATE_OF AUTHORITY_OF
  printf 'apiVersion: v1\nkind: Secret\nmetadata: { name: %s }\ntype: kubernetes.io/tls\ndata:\n' "$1"
  printf '  tls.crt: %s\n  tls.key: %s\n  ca.crt: %s\n' "$(base64 < "$2.crt" | tr -d '\n')" "$(base64 < "$2.key" | tr -d '\n')" "$(base64 < "$3-ca.crt" | tr -d '\n')"
}

certify account-authz serverAuth
certify envoy clientAuth
secret account-authz-tls account-authz envoy
echo ---
secret account-authz-client-tls envoy account-authz
