// The same checks in Rego, evaluated by OPA's Go library with a prepared query: what opa-envoy-plugin does at its core, without the
// rest of it (decision log, status, plugins).
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"google.golang.org/grpc/codes"

	"account-authz/bench/peers/peer"
)

type server struct {
	authv3.UnimplementedAuthorizationServer
	query   rego.PreparedEvalQuery
	removed []string
}

func (s *server) Check(ctx context.Context, request *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	http := request.GetAttributes().GetRequest().GetHttp()
	headers := make(map[string]any, len(http.GetHeaders()))
	for name, value := range http.GetHeaders() {
		headers[name] = value
	}
	input := map[string]any{"attributes": map[string]any{"request": map[string]any{"http": map[string]any{
		"method":  http.GetMethod(),
		"path":    http.GetPath(),
		"headers": headers,
	}}}}
	results, err := s.query.Eval(ctx, rego.EvalInput(input))
	if err != nil || len(results) != 1 {
		return peer.Deny(&peer.Refusal{Status: typev3.StatusCode_ServiceUnavailable, Code: codes.Unavailable, Reason: "internal"}), nil
	}
	decision, _ := results[0].Expressions[0].Value.(map[string]any)
	if decision["allowed"] != true {
		code, _ := decision["http_status"].(json.Number)
		status, _ := code.Int64()
		return peer.Deny(&peer.Refusal{Status: typev3.StatusCode(status), Code: codes.PermissionDenied, Reason: "denied"}), nil
	}
	metadata, _ := decision["dynamic_metadata"].(map[string]any)
	text := func(name string) string { value, _ := metadata[name].(string); return value }
	return peer.Allow(peer.Principal{
		UID: text("uid"), App: text("app"), Acc: text("acc"), Role: text("role"), Iss: text("iss"),
	}, s.removed), nil
}

func main() {
	options := peer.ReadOptions()
	policy, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	response, err := http.Get(options.JwksURL)
	if err != nil {
		log.Fatal(err)
	}
	jwks, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	removed := options.Answer().GetOkResponse().GetHeadersToRemove()
	query, err := rego.New(
		rego.Query("data.envoy.authz.allow"),
		rego.Module("policy.rego", string(policy)),
		rego.Store(inmem.NewFromObject(map[string]any{"bench": map[string]any{
			"jwks": string(jwks), "issuer": options.Issuer, "audience": options.Audience, "removed": []any{},
		}})),
	).PrepareForEval(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	peer.Serve(options, &server{query: query, removed: removed})
}
