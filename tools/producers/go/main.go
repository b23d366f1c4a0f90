// Signs tokens with Go libraries: reads the job named by the first argument, prints one JSON line per token.
package main

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
)

type key struct {
	Alg string `json:"alg"`
	Kid string `json:"kid"`
	Pem string `json:"pem"`
}

type result struct {
	Library string `json:"library"`
	Alg     string `json:"alg"`
	Token   string `json:"token,omitempty"`
}

func golangJwt(k key, private any, claims json.RawMessage) (string, error) {
	method := jwt.GetSigningMethod(k.Alg)
	if method == nil {
		return "", fmt.Errorf("no %s", k.Alg)
	}
	var all jwt.MapClaims
	if err := json.Unmarshal(claims, &all); err != nil {
		return "", err
	}
	token := jwt.NewWithClaims(method, all)
	token.Header["kid"] = k.Kid
	return token.SignedString(private)
}

func goJose(k key, private any, claims json.RawMessage) (string, error) {
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", k.Kid)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(k.Alg), Key: private}, options)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

func jwx(k key, private any, claims json.RawMessage) (string, error) {
	alg, ok := jwa.LookupSignatureAlgorithm(k.Alg)
	if !ok {
		return "", fmt.Errorf("no %s", k.Alg)
	}
	headers := jws.NewHeaders()
	if err := headers.Set("kid", k.Kid); err != nil {
		return "", err
	}
	if err := headers.Set("typ", "JWT"); err != nil {
		return "", err
	}
	signed, err := jws.Sign(claims, jws.WithKey(alg, private, jws.WithProtectedHeaders(headers)))
	return string(signed), err
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var job struct {
		Keys   []key             `json:"keys"`
		Claims []json.RawMessage `json:"claims"`
	}
	if err := json.Unmarshal(text, &job); err != nil {
		panic(err)
	}
	out := json.NewEncoder(os.Stdout)
	for name, sign := range map[string]func(key, any, json.RawMessage) (string, error){
		"golang-jwt": golangJwt, "go-jose": goJose, "jwx": jwx,
	} {
		for _, k := range job.Keys {
			block, _ := pem.Decode([]byte(k.Pem))
			private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				panic(err)
			}
			for _, claims := range job.Claims {
				token, err := sign(k, private, claims)
				if err != nil {
					token = ""
				}
				if err := out.Encode(result{name, k.Alg, token}); err != nil {
					panic(err)
				}
			}
		}
	}
}
