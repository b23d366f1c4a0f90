// The same checks with grpc-go and golang-jwt, keys parsed by lestrrat-go/jwx: verifies the token on every call.
package main

import (
	"context"
	"errors"
	"log"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/golang-jwt/jwt/v5"
	"github.com/lestrrat-go/jwx/v3/jwk"

	"account-authz/bench/peers/peer"
)

type server struct {
	authv3.UnimplementedAuthorizationServer
	parser  *jwt.Parser
	keys    map[string]any
	removed []string
}

func (s *server) Check(_ context.Context, request *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	http := request.GetAttributes().GetRequest().GetHttp()
	admitted, refusal := peer.Admit(http)
	if refusal != nil {
		return peer.Deny(http, refusal, nil), nil
	}
	principal, refusal := s.verify(admitted.Token)
	if refusal == nil {
		refusal = peer.Permits(principal, &admitted)
	}
	if refusal != nil {
		return peer.Deny(http, refusal, principal), nil
	}
	return peer.Allow(http, principal, s.removed), nil
}

func (s *server) verify(token string) (*peer.Principal, *peer.Refusal) {
	c := &claims{}
	_, err := s.parser.ParseWithClaims(token, c, s.keyOf)
	if err == nil {
		return &c.Principal, nil
	}
	if errors.Is(err, jwt.ErrTokenExpired) {
		return nil, peer.TokenExpired
	}
	return nil, peer.TokenInvalid
}

func (s *server) keyOf(token *jwt.Token) (any, error) {
	kid, _ := token.Header["kid"].(string)
	key, found := s.keys[kid]
	if !found || !isHeader(token.Header) {
		return nil, jwt.ErrTokenUnverifiable
	}
	return key, nil
}

// By kid; keys without a kid are skipped. A real service would refresh from time to time.
func fetchKeys(url string) (map[string]any, error) {
	set, err := jwk.Fetch(context.Background(), url)
	if err != nil {
		return nil, err
	}
	keys := map[string]any{}
	for index := range set.Len() {
		key, _ := set.Key(index)
		kid, found := key.KeyID()
		if !found || kid == "" {
			continue
		}
		var raw any
		if err := jwk.Export(key, &raw); err != nil {
			return nil, err
		}
		keys[kid] = raw
	}
	return keys, nil
}

func main() {
	options := peer.ReadOptions()
	keys, err := fetchKeys(options.JwksURL)
	if err != nil {
		log.Fatal(err)
	}
	peer.Serve(options, &server{
		keys: keys,
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{"RS256", "ES256", "EdDSA"}),
			jwt.WithIssuer(options.Issuer),
			jwt.WithAudience(options.Audience),
			jwt.WithExpirationRequired(),
			jwt.WithIssuedAt(),
			jwt.WithLeeway(leeway),
		),
		removed: options.Answer().GetOkResponse().GetHeadersToRemove(),
	})
}
