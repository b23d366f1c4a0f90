# The same checks in Rego, for opa-envoy-plugin and for a Go service with OPA's library. data.bench has the settings.
package envoy.authz

import rego.v1

http := input.attributes.request.http

path := split(trim_left(split(http.path, "?")[0], "/"), "/")

account := path[3] if array.slice(path, 0, 3) == ["api", "subscriptions", "accounts"]

token := substring(http.headers.authorization, 7, -1) if startswith(lower(http.headers.authorization), "bearer ")

verified := io.jwt.decode_verify(token, {
	"cert": data.bench.jwks,
	"iss": data.bench.issuer,
	"aud": data.bench.audience,
})

claims := verified[2] if {
	verified[0]
	verified[1].typ == "JWT"
	is_number(verified[2].exp)
	is_string(verified[2].uid)
	is_string(verified[2].app)
	is_string(verified[2].acc)
	is_string(verified[2].role)
}

methods := {
	"owner": {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"},
	"admin": {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"},
	"member": {"GET", "HEAD"},
}

reason := "route_unknown" if {
	not account
} else := "token_missing" if {
	not token
} else := "token_invalid" if {
	not claims
} else := "role_forbidden" if {
	not http.method in methods[claims.role]
} else := "account_mismatch" if {
	claims.acc != account
} else := "allowed"

status := {"route_unknown": 404, "token_missing": 401, "token_invalid": 401, "role_forbidden": 403, "account_mismatch": 403}

allow := {
	"allowed": true,
	"headers": {
		"x-auth-uid": claims.uid,
		"x-auth-app": claims.app,
		"x-auth-acc": claims.acc,
		"x-auth-role": claims.role,
		"x-auth-iss": claims.iss,
	},
	"request_headers_to_remove": data.bench.removed,
	"dynamic_metadata": {
		"decision": "allow",
		"reason": "allowed",
		"uid": claims.uid,
		"app": claims.app,
		"acc": claims.acc,
		"role": claims.role,
		"iss": claims.iss,
	},
} if {
	reason == "allowed"
} else := {
	"allowed": false,
	"http_status": status[reason],
	"headers": {"content-type": "application/problem+json"},
	"body": sprintf("{\"status\":%d,\"reason\":\"%s\"}", [status[reason], reason]),
}
