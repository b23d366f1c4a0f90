package peer

import (
	"strings"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
)

// Request is well-formed, on a known route, with an unverified token.
type Request struct {
	Method string
	// Narrowed says whether the route is for owners and admins only.
	Narrowed bool
	Token    string
	// Account is that of the path, empty if it has none; Others are those of the header and the query.
	Account string
	Others  []string
}

const (
	maxTargetBytes = 8192
	maxPathBytes   = 2048
	maxTokenBytes  = 8192
)

// A byte of a path segment.
var isSegmentByte = bytesOf("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~:@-")

func bytesOf(all string) (set [256]bool) {
	for index := range len(all) {
		set[all[index]] = true
	}
	return set
}

// Admit makes the checks that need no token: the request grammar, the route, the presence of a token.
func Admit(http *authv3.AttributeContext_HttpRequest) (Request, *Refusal) {
	headers := http.GetHeaders()
	target, method := http.GetPath(), http.GetMethod()
	if !isMethod(method) || len(target) > maxTargetBytes || strings.IndexByte(target, '#') >= 0 {
		return Request{}, RequestInvalid
	}
	if shown, found := headers[":path"]; found && shown != target {
		return Request{}, RequestInvalid
	}
	if shown, found := headers[":method"]; found && shown != method {
		return Request{}, RequestInvalid
	}
	authorization := headers["authorization"]
	if strings.IndexByte(authorization, ',') >= 0 {
		return Request{}, RequestInvalid
	}
	path, query, _ := strings.Cut(target, "?")
	segments, inGrammar := segmentsOf(path)
	if !inGrammar {
		return Request{}, RequestInvalid
	}
	others, unambiguous := accountsNamed(headers, query)
	if !unambiguous {
		return Request{}, RequestInvalid
	}
	request := Request{Method: method, Others: others}
	if refusal := request.match(&segments); refusal != nil {
		return Request{}, refusal
	}
	scheme, token, found := strings.Cut(authorization, " ")
	if !found || !strings.EqualFold(scheme, "bearer") {
		return Request{}, TokenMissing
	}
	if len(token) > maxTokenBytes {
		return Request{}, TokenInvalid
	}
	request.Token = token
	return request, nil
}

func isMethod(method string) bool {
	for index := range len(method) {
		if method[index] < 'A' || method[index] > 'Z' {
			return false
		}
	}
	return method != ""
}

// The first segments, as many as a route has; empty if there are fewer.
type segments [5]string

func segmentsOf(path string) (found segments, inGrammar bool) {
	if path == "" || path[0] != '/' || len(path) > maxPathBytes {
		return found, false
	}
	count := 0
	for start := 1; start < len(path); count++ {
		end := start
		for end < len(path) && path[end] != '/' {
			if !isSegmentByte[path[end]] {
				return found, false
			}
			end++
		}
		segment := path[start:end]
		if segment == "" || segment == "." || segment == ".." {
			return found, false
		}
		if count < len(found) {
			found[count] = segment
		}
		start = end + 1
	}
	return found, true
}

// A case-insensitive upstream would serve the route whose rules were not applied, so such a path is refused.
func (request *Request) match(segments *segments) *Refusal {
	if segments[0] != "api" || segments[1] != "subscriptions" {
		if strings.EqualFold(segments[0], "api") && strings.EqualFold(segments[1], "subscriptions") {
			return RequestInvalid
		}
		return RouteUnknown
	}
	if segments[3] == "" {
		return nil
	}
	if segments[2] != "accounts" {
		if strings.EqualFold(segments[2], "accounts") {
			return RequestInvalid
		}
		return nil
	}
	request.Account = segments[3]
	request.Narrowed = segments[4] == "billing"
	if !request.Narrowed && strings.EqualFold(segments[4], "billing") {
		return RequestInvalid
	}
	return nil
}

const (
	accountHeader    = "x-account-id"
	accountParameter = "account_id"
)

// False if one of them is ambiguous.
func accountsNamed(headers map[string]string, query string) ([]string, bool) {
	for _, lookAlike := range [...]string{"x_account_id", "x-account_id", "x_account-id"} {
		if _, found := headers[lookAlike]; found {
			return nil, false
		}
	}
	var named []string
	if value, found := headers[accountHeader]; found {
		if strings.TrimSpace(value) == "" || strings.IndexByte(value, ',') >= 0 {
			return nil, false
		}
		named = append(named, value)
	}
	for query != "" {
		var parameter string
		parameter, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(parameter, "=")
		if name == accountParameter {
			named = append(named, value)
		}
	}
	return named, true
}

var methods = map[string]map[string]bool{
	"owner":  {"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true},
	"admin":  {"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true},
	"member": {"GET": true, "HEAD": true},
}

// Permits checks role and account of a verified token.
func Permits(principal *Principal, request *Request) *Refusal {
	if !methods[principal.Role][request.Method] {
		return RoleForbidden
	}
	if request.Narrowed && principal.Role != "owner" && principal.Role != "admin" {
		return RoleForbidden
	}
	if request.Account != "" && request.Account != principal.Acc {
		return AccountMismatch
	}
	for _, other := range request.Others {
		if other != principal.Acc {
			return AccountMismatch
		}
	}
	return nil
}
