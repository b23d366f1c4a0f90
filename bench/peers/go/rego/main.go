// The same checks in Rego, evaluated by OPA's Go library with a prepared query: what opa-envoy-plugin does at its core, without the
// rest of it (decision log, status, plugins).
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"account-authz/bench/peers/keys"
	"account-authz/bench/peers/peer"
)

type server struct {
	authv3.UnimplementedAuthorizationServer
	query rego.PreparedEvalQuery
}

func (s *server) Check(ctx context.Context, request *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	http := request.GetAttributes().GetRequest().GetHttp()
	input := map[string]any{"attributes": map[string]any{"request": map[string]any{"http": map[string]any{
		"method":  http.GetMethod(),
		"path":    http.GetPath(),
		"headers": http.GetHeaders(),
	}}}}
	value, err := ast.InterfaceToValue(input)
	if err != nil {
		return unavailable, nil
	}
	results, err := s.query.Eval(ctx, rego.EvalParsedInput(value))
	if err != nil || len(results) != 1 {
		return unavailable, nil
	}
	decision, _ := results[0].Expressions[0].Value.(map[string]any)
	metadata, err := structpb.NewStruct(object(decision, "dynamic_metadata"))
	if err != nil {
		return unavailable, nil
	}
	if decision["allowed"] == true {
		removed, _ := decision["request_headers_to_remove"].([]any)
		names := make([]string, len(removed))
		for index, name := range removed {
			names[index], _ = name.(string)
		}
		return &authv3.CheckResponse{
			Status: &status.Status{Code: int32(codes.OK)},
			HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
				Headers: headers(decision), HeadersToRemove: names,
			}},
			DynamicMetadata: metadata,
		}, nil
	}
	number, _ := decision["http_status"].(json.Number)
	code, _ := number.Int64()
	body, _ := decision["body"].(string)
	return &authv3.CheckResponse{
		Status: &status.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status: &typev3.HttpStatus{Code: typev3.StatusCode(code)}, Headers: headers(decision), Body: body,
		}},
		DynamicMetadata: metadata,
	}, nil
}

var unavailable = &authv3.CheckResponse{
	Status: &status.Status{Code: int32(codes.Unavailable)},
	HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
		Status: &typev3.HttpStatus{Code: typev3.StatusCode_ServiceUnavailable},
	}},
}

func object(decision map[string]any, name string) map[string]any {
	value, _ := decision[name].(map[string]any)
	return value
}

func headers(decision map[string]any) []*corev3.HeaderValueOption {
	named := object(decision, "headers")
	options := make([]*corev3.HeaderValueOption, 0, len(named))
	for name, value := range named {
		text, _ := value.(string)
		options = append(options, peer.Overwrite(name, text))
	}
	return options
}

// As the policy wants it.
func pemOf(key jwk.Key) (any, error) {
	algorithm, _ := key.Algorithm()
	text, err := jwk.Pem(key)
	return map[string]any{"alg": algorithm.String(), "pem": string(text)}, err
}

func main() {
	options := peer.ReadOptions()
	policy, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	byKid, err := keys.Fetch(options.JwksURL, pemOf)
	if err != nil {
		log.Fatal(err)
	}
	data := map[string]any{"bench": map[string]any{"keys": byKid, "issuer": options.Issuer, "audience": options.Audience}}
	query, err := rego.New(
		rego.Query("data.envoy.authz.allow"),
		rego.Module("policy.rego", string(policy)),
		rego.Store(inmem.NewFromObjectWithOpts(data, inmem.OptReturnASTValuesOnRead(true))),
	).PrepareForEval(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	peer.Serve(options, &server{query: query})
}
