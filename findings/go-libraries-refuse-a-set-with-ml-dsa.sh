#!/usr/bin/env bash
# RFC 7517 section 5 says that a reader should ignore a key whose type it does not know. Three libraries of Go refuse the whole set instead, so an
# issuer that publishes its first ML-DSA key (kty AKP, RFC 9964) beside the old ones breaks every verifier that is built with them.
# For users of account-authz, which skips such a key: update every verifier of the issuer before it publishes one (docs/keys.md).
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOFLAGS=-mod=mod GOMODCACHE=$folder/modules
cat >go.mod <<'M'
module finding
go 1.24
require (
	github.com/MicahParks/jwkset v0.11.4
	github.com/go-jose/go-jose/v4 v4.1.9
	github.com/lestrrat-go/jwx/v3 v3.4.0
)
M
cat >main.go <<'G'
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/MicahParks/jwkset"
	"github.com/go-jose/go-jose/v4"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

func says(err error) string {
	if err == nil {
		return "reads"
	}
	return "refuses"
}

func main() {
	private, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ec, _ := json.Marshal(jose.JSONWebKey{Key: &private.PublicKey, KeyID: "old", Algorithm: "ES256", Use: "sig"})
	pub := make([]byte, 1312)
	rand.Read(pub)
	akp := fmt.Sprintf(`{"kty":"AKP","alg":"ML-DSA-44","kid":"new","use":"sig","pub":"%s"}`, base64.RawURLEncoding.EncodeToString(pub))
	for _, set := range []string{string(ec), string(ec) + "," + akp} {
		bytes := []byte(`{"keys":[` + set + `]}`)
		var ofJose jose.JSONWebKeySet
		errJose := json.Unmarshal(bytes, &ofJose)
		_, errJwx := jwk.Parse(bytes)
		var ofJwkset jwkset.JWKSMarshal
		errJwkset := json.Unmarshal(bytes, &ofJwkset)
		if errJwkset == nil {
			_, errJwkset = ofJwkset.ToStorage()
		}
		fmt.Println("go-jose", says(errJose), "- jwx", says(errJwx), "- jwkset", says(errJwkset))
	}
}
G
go mod tidy 2>"$folder/tidy" || { cat "$folder/tidy"; exit 1; }
seen=$(go run .)
echo "go-jose 4.1.9, jwx 3.4.0, jwkset 0.11.4 (under keyfunc), a set with an EC key, then the same with an ML-DSA key beside it:"
echo "$seen"
[ "$seen" = 'go-jose reads - jwx reads - jwkset reads
go-jose refuses - jwx refuses - jwkset refuses' ]
