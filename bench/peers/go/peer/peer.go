// Package peer is what the Go peers share: their options, the message that an allow answers, and the gRPC server.
package peer

import (
	"encoding/json"
	"log"
	"net"
	"os"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Options is what a peer is started with: JSON, as its last argument.
type Options struct {
	Port       int    `json:"port"`
	AnswerFile string `json:"answerFile"`
	Issuer     string `json:"issuer"`
	Audience   string `json:"audience"`
	JwksURL    string `json:"jwksUrl"`
	Cache      bool   `json:"cache"`
}

// ReadOptions reads the last argument.
func ReadOptions() Options {
	var options Options
	if err := json.Unmarshal([]byte(os.Args[len(os.Args)-1]), &options); err != nil {
		log.Fatal(err)
	}
	return options
}

// Answer is the product's own allow.
func (options Options) Answer() *authv3.CheckResponse {
	bytes, err := os.ReadFile(options.AnswerFile)
	if err != nil {
		log.Fatal(err)
	}
	answer := &authv3.CheckResponse{}
	if err := proto.Unmarshal(bytes, answer); err != nil {
		log.Fatal(err)
	}
	return answer
}

// Serve answers until the process is killed.
func Serve(options Options, service authv3.AuthorizationServer) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(options.Port)))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, service)
	log.Fatal(server.Serve(listener))
}

// Refusal is an HTTP status, its code of google.rpc, and the reason.
type Refusal struct {
	Status typev3.StatusCode
	Code   codes.Code
	Reason string
}

// The refusals of product.md section 4 that these checks can come to.
var (
	RouteUnknown    = &Refusal{typev3.StatusCode_NotFound, codes.NotFound, "route_unknown"}
	TokenMissing    = &Refusal{typev3.StatusCode_Unauthorized, codes.Unauthenticated, "token_missing"}
	TokenInvalid    = &Refusal{typev3.StatusCode_Unauthorized, codes.Unauthenticated, "token_invalid"}
	TokenExpired    = &Refusal{typev3.StatusCode_Unauthorized, codes.Unauthenticated, "token_expired"}
	RoleForbidden   = &Refusal{typev3.StatusCode_Forbidden, codes.PermissionDenied, "role_forbidden"}
	AccountMismatch = &Refusal{typev3.StatusCode_Forbidden, codes.PermissionDenied, "account_mismatch"}
)

// Principal is what a verified token says.
type Principal struct {
	UID, App, Acc, Role, Iss string
}

var methods = map[string]map[string]bool{
	"owner":  {"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true},
	"admin":  {"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true},
	"member": {"GET": true, "HEAD": true},
}

const accounts = "/api/subscriptions/accounts/"

// AccountOf is the account that a request addresses.
func AccountOf(http *authv3.AttributeContext_HttpRequest) (string, bool) {
	path, _, _ := strings.Cut(http.GetPath(), "?")
	rest, found := strings.CutPrefix(path, accounts)
	if !found {
		return "", false
	}
	account, _, _ := strings.Cut(rest, "/")
	return account, account != ""
}

// BearerOf is the token of a request.
func BearerOf(http *authv3.AttributeContext_HttpRequest) (string, bool) {
	scheme, token, found := strings.Cut(http.GetHeaders()["authorization"], " ")
	return token, found && strings.EqualFold(scheme, "bearer") && token != ""
}

// Permits judges role and account of a verified token.
func Permits(principal Principal, method, account string) *Refusal {
	if !methods[principal.Role][method] {
		return RoleForbidden
	}
	if principal.Acc != account {
		return AccountMismatch
	}
	return nil
}

// Allow is the answer for this principal; removed are the headers that it takes away.
func Allow(principal Principal, removed []string) *authv3.CheckResponse {
	return &authv3.CheckResponse{
		Status: &status.Status{Code: int32(codes.OK)},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			Headers: []*corev3.HeaderValueOption{
				overwrite("x-auth-uid", principal.UID),
				overwrite("x-auth-app", principal.App),
				overwrite("x-auth-acc", principal.Acc),
				overwrite("x-auth-role", principal.Role),
				overwrite("x-auth-iss", principal.Iss),
			},
			HeadersToRemove: removed,
		}},
		DynamicMetadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"decision": structpb.NewStringValue("allow"),
			"reason":   structpb.NewStringValue("allowed"),
			"uid":      structpb.NewStringValue(principal.UID),
			"app":      structpb.NewStringValue(principal.App),
			"acc":      structpb.NewStringValue(principal.Acc),
			"role":     structpb.NewStringValue(principal.Role),
			"iss":      structpb.NewStringValue(principal.Iss),
		}},
	}
}

// Deny is the answer for a refusal.
func Deny(refusal *Refusal) *authv3.CheckResponse {
	body := `{"status":` + strconv.Itoa(int(refusal.Status)) + `,"reason":"` + refusal.Reason + `"}`
	return &authv3.CheckResponse{
		Status: &status.Status{Code: int32(refusal.Code)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status:  &typev3.HttpStatus{Code: refusal.Status},
			Headers: []*corev3.HeaderValueOption{overwrite("content-type", "application/problem+json")},
			Body:    body,
		}},
	}
}

func overwrite(key, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: key, Value: value},
		Append:       wrapperspb.Bool(false),
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}
