package peer

import (
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Refusal is an HTTP status, its google.rpc code, and the text for the client.
type Refusal struct {
	Status    typev3.StatusCode
	Code      codes.Code
	Reason    string
	Title     string
	Challenge string
}

const realm = `Bearer realm="account-authz"`

// The refusals of docs/explain.md that these checks can produce.
var (
	RequestInvalid  = &Refusal{typev3.StatusCode_BadRequest, codes.InvalidArgument, "request_invalid", "The request is not valid", ""}
	RouteUnknown    = &Refusal{typev3.StatusCode_NotFound, codes.NotFound, "route_unknown", "There is nothing here", ""}
	TokenMissing    = &Refusal{typev3.StatusCode_Unauthorized, codes.Unauthenticated, "token_missing", "A bearer token is required", realm}
	TokenInvalid    = &Refusal{typev3.StatusCode_Unauthorized, codes.Unauthenticated, "token_invalid", "The bearer token is not valid", realm + `, error="invalid_token"`}
	TokenExpired    = &Refusal{typev3.StatusCode_Unauthorized, codes.Unauthenticated, "token_expired", "The bearer token has expired", realm + `, error="invalid_token"`}
	RoleForbidden   = &Refusal{typev3.StatusCode_Forbidden, codes.PermissionDenied, "role_forbidden", "The role may not do this", realm + `, error="insufficient_scope"`}
	AccountMismatch = &Refusal{typev3.StatusCode_Forbidden, codes.PermissionDenied, "account_mismatch", "The request addresses another account", ""}
)

// Principal is the identity in a verified token.
type Principal struct {
	UID, App, Acc, Role, Iss string
}

// Shared parts of every answer; a message may be sent many times as long as nothing modifies it.
var (
	okStatus    = &status.Status{Code: int32(codes.OK)}
	notAppended = wrapperspb.Bool(false)
	allowWord   = structpb.NewStringValue("allow")
	allowedWord = structpb.NewStringValue("allowed")
	denyWord    = structpb.NewStringValue("deny")
	problemJSON = Overwrite("content-type", "application/problem+json")
	noStore     = Overwrite("cache-control", "no-store")
)

// Allow is the answer for this principal; removed are the headers that every allow removes.
func Allow(http *authv3.AttributeContext_HttpRequest, principal *Principal, removed []string) *authv3.CheckResponse {
	metadata := identity(principal, allowWord, allowedWord)
	metadata["account-authz"] = allowWord
	return &authv3.CheckResponse{
		Status: okStatus,
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			Headers: []*corev3.HeaderValueOption{
				Overwrite("x-auth-uid", principal.UID),
				Overwrite("x-auth-app", principal.App),
				Overwrite("x-auth-acc", principal.Acc),
				Overwrite("x-auth-role", principal.Role),
				Overwrite("x-auth-iss", principal.Iss),
			},
			HeadersToRemove: withShown(removed, http.GetHeaders()),
		}},
		DynamicMetadata: &structpb.Struct{Fields: metadata},
	}
}

// Adds request headers under the prefix that an allow does not set.
func withShown(removed []string, headers map[string]string) []string {
	all := removed
	for name := range headers {
		if len(name) < len("x-auth-") || name[0] != 'x' || name[2:6] != "auth" || !isDash(name[1]) || !isDash(name[6]) {
			continue
		}
		switch name {
		case "x-auth-uid", "x-auth-app", "x-auth-acc", "x-auth-role", "x-auth-iss":
			continue
		}
		if !slices.Contains(removed, name) {
			all = append(all[:len(all):len(all)], name)
		}
	}
	return all
}

func isDash(character byte) bool {
	return character == '-' || character == '_'
}

func identity(principal *Principal, decision, reason *structpb.Value) map[string]*structpb.Value {
	return map[string]*structpb.Value{
		"decision": decision,
		"reason":   reason,
		"uid":      structpb.NewStringValue(principal.UID),
		"app":      structpb.NewStringValue(principal.App),
		"acc":      structpb.NewStringValue(principal.Acc),
		"role":     structpb.NewStringValue(principal.Role),
		"iss":      structpb.NewStringValue(principal.Iss),
	}
}

// Deny is the answer for a refusal; principal is nil without a verified token.
func Deny(http *authv3.AttributeContext_HttpRequest, refusal *Refusal, principal *Principal) *authv3.CheckResponse {
	headers := []*corev3.HeaderValueOption{problemJSON, noStore}
	if refusal.Challenge != "" {
		headers = append(headers, Overwrite("www-authenticate", refusal.Challenge))
	}
	metadata := map[string]*structpb.Value{"decision": denyWord, "reason": structpb.NewStringValue(refusal.Reason)}
	if principal != nil {
		metadata = identity(principal, denyWord, metadata["reason"])
	}
	// No part needs JSON escaping.
	body := strings.Join([]string{
		`{"type":"urn:account-authz:`, refusal.Reason, `","title":"`, refusal.Title, `","status":`, strconv.Itoa(int(refusal.Status)),
		`,"reason":"`, refusal.Reason, `","request_id":"`, requestID(http), `"}`,
	}, "")
	return &authv3.CheckResponse{
		Status: &status.Status{Code: int32(refusal.Code)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status:  &typev3.HttpStatus{Code: refusal.Status},
			Headers: headers,
			Body:    body,
		}},
		DynamicMetadata: &structpb.Struct{Fields: metadata},
	}
}

var isIDByte = bytesOf("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")

func requestID(http *authv3.AttributeContext_HttpRequest) string {
	id := http.GetHeaders()["x-request-id"]
	if len(id) == 0 || len(id) > 128 {
		return uuid.NewString()
	}
	for index := range len(id) {
		if !isIDByte[id[index]] {
			return uuid.NewString()
		}
	}
	return id
}

// Overwrite is a header that replaces the client's.
func Overwrite(key, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: key, Value: value},
		Append:       notAppended,
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}
