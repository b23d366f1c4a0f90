# The same checks in Rego, for opa-envoy-plugin and for a Go service with OPA's library. data.bench has the issuer, the audience and the
# keys by kid, as PEM, which OPA reads in half the time of a JWKS. Short rules, each asked for by a `not`: OPA evaluates what follows an
# expression inside of it, so that a long body makes a deep stack, which Go moves to a larger place for each call.
package envoy.authz

import rego.v1

import input.attributes.request.http

allow := {
	"allowed": true,
	"headers": {
		"x-auth-uid": who.uid,
		"x-auth-app": who.app,
		"x-auth-acc": who.acc,
		"x-auth-role": who.role,
		"x-auth-iss": who.iss,
	},
	"request_headers_to_remove": headers_to_remove,
	"dynamic_metadata": {
		"decision": "allow",
		"account-authz": "allow",
		"reason": "allowed",
		"uid": who.uid,
		"app": who.app,
		"acc": who.acc,
		"role": who.role,
		"iss": who.iss,
	},
} if {
	reason == "allowed"
	who := identity
} else := {
	"allowed": false,
	"http_status": refusal.status,
	"headers": object.union(refusal.headers, {"content-type": "application/problem+json", "cache-control": "no-store"}),
	"body": json.marshal({
		"type": concat(":", ["urn:account-authz", reason]),
		"title": refusal.title,
		"status": refusal.status,
		"reason": reason,
		"request_id": request_id,
	}),
	"dynamic_metadata": object.union({"decision": "deny", "reason": reason}, known_identity),
}

# The grammar of a request.

# Most requests: a path in lower case without a query, and no header that is ours or could be taken for it.
request_is_valid if {
	is_plain
	count(http.path) <= 2048
	headers := http.headers
	methods.owner[http.method]
	headers[":path"] == http.path
	headers[":method"] == http.method
	not contains(headers.authorization, ",")
	not has_unusual_headers
}

else if {
	regex.match(path_grammar, path)
	regex.match(`^[A-Z]+$`, http.method)
	count(path) <= 2048
	count(http.path) <= 8192
	object.get(http.headers, ":path", http.path) == http.path
	object.get(http.headers, ":method", http.method) == http.method
	not contains(object.get(http.headers, "authorization", ""), ",")
	case_is_exact
	account_header_is_valid
	query_is_valid
}

# Segments of the allowed characters, none of them empty, `.` or `..`; the empty path of `/` too.
path_grammar := `^/(?:(?:[A-Za-z0-9_~:@-]|\.[A-Za-z0-9_~:@-]|\.\.[A-Za-z0-9._~:@-])[A-Za-z0-9._~:@-]*(?:/(?:[A-Za-z0-9_~:@-]|\.[A-Za-z0-9_~:@-]|\.\.[A-Za-z0-9._~:@-])[A-Za-z0-9._~:@-]*)*/?)?$`

is_plain if regex.match(`^/(?:(?:[a-z0-9_~:@-]|\.[a-z0-9_~:@-]|\.\.[a-z0-9._~:@-])[a-z0-9._~:@-]*(?:/(?:[a-z0-9_~:@-]|\.[a-z0-9_~:@-]|\.\.[a-z0-9._~:@-])[a-z0-9._~:@-]*)*/?)?$`, http.path)

has_query if contains(http.path, "?")

path := http.path if not has_query

else := substring(http.path, 0, indexof(http.path, "?"))

# The first is empty.
segments := split(trim_suffix(path, "/"), "/")

# All in lower case, as most are, it cannot be a route but for case.
case_is_exact if lower(path) == path

else if not is_route_but_for_case

is_route_but_for_case if {
	not route_is_known
	lower(segments[1]) == "api"
	lower(segments[2]) == "subscriptions"
}

is_route_but_for_case if {
	segments[3] != "accounts"
	lower(segments[3]) == "accounts"
	segments[4]
	route_is_known
}

is_route_but_for_case if {
	segments[5] != "billing"
	lower(segments[5]) == "billing"
	segments[3] == "accounts"
	route_is_known
}

# One look at all names: most requests have no header that is ours or could be taken for it.
has_unusual_headers if regex.match(` x[-_]a(?:ccount[-_]id(?: |$)|uth[-_])`, concat(" ", object.keys(http.headers)))

account_header_is_valid if not has_unusual_headers

else if {
	not http.headers["x-account_id"]
	not http.headers["x_account-id"]
	not http.headers.x_account_id
	account_header := object.get(http.headers, "x-account-id", "none")
	trim_space(account_header) != ""
	not contains(account_header, ",")
}

query_is_valid if not has_query

else if {
	not contains(query, "#")
}

query := substring(http.path, indexof(http.path, "?") + 1, -1)

query_parameters := split(query, "&")

# Routes.

route_is_known if {
	segments[1] == "api"
	segments[2] == "subscriptions"
}

is_narrowed if {
	segments[5] == "billing"
	segments[3] == "accounts"
}

# The token.

token := substring(http.headers.authorization, 7, -1) if startswith(http.headers.authorization, "Bearer ")

else := substring(http.headers.authorization, 7, -1) if lower(substring(http.headers.authorization, 0, 7)) == "bearer "

decoded := io.jwt.decode(token) if count(token) <= 8192

header := decoded[0]

claims := decoded[1]

key := data.bench.keys[header.kid]

header_is_valid if {
	header.alg == key.alg
	lower(header.typ) in {"jwt", "at+jwt", "application/jwt", "application/at+jwt"}
	object.keys(header) & {"crit", "b64", "zip", "jwk", "jku", "x5u"} == set()
}

claims_are_valid if {
	claims.iss == data.bench.issuer
	is_audience(claims.aud)

	# No JSON is a set.
	object.get(claims, "cnf", set()) == set()
	regex.match(fields_grammar, concat(" ", [claims.uid, claims.app, claims.role, claims.acc]))
}

# In nanoseconds, as OPA has the time.
latest := time.now_ns() + 30000000000

is_current if claims.exp * 1000000000 > latest - 60000000000

# uid, app and role are visible ASCII without space, comma, semicolon and double quote: a space can only stand between them.
fields_grammar := `^[!#-+\--:<-~]{1,128} [!#-+\--:<-~]{1,128} [!#-+\--:<-~]{1,128} (?:[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,127}|\.[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,126}|\.\.[A-Za-z0-9._~-]{1,126})$`

is_audience(audience) if audience == data.bench.audience

else if {
	data.bench.audience in audience
	every each in audience {
		is_string(each)
	}
}

iat_fits if {
	claims.iat * 1000000000 <= latest
	claims.iat <= claims.exp
	claims.exp - claims.iat <= 86400
}

else if {
	object.get(claims, "iat", set()) == set()
	(claims.exp * 1000000000) - latest <= 86370000000000
}

nbf_fits if object.get(claims, "nbf", set()) == set()

else if claims.nbf * 1000000000 <= latest

is_signed if {
	header.alg == "RS256"
	io.jwt.verify_rs256(token, key.pem)
}

is_signed if {
	header.alg == "ES256"
	io.jwt.verify_es256(token, key.pem)
}

is_signed if {
	header.alg == "EdDSA"
	io.jwt.verify_eddsa(token, key.pem)
}

# Role and account.

methods := {
	"owner": {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"},
	"admin": {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"},
	"member": {"GET", "HEAD"},
}

role_is_allowed if {
	methods[claims.role][http.method]
	not is_narrowed
}

else if {
	http.method in methods[claims.role]
	claims.role in {"owner", "admin"}
}

accounts_are_own if {
	segments[4] == claims.acc
	segments[3] == "accounts"
	not has_unusual_headers
	not has_query
}

else if {
	path_account_is_own
	header_account_is_own
	query_accounts_are_own
}

path_account_is_own if {
	segments[4] == claims.acc
	segments[3] == "accounts"
}

else if not is_account_route

is_account_route if {
	segments[4]
	segments[3] == "accounts"
}

header_account_is_own if not has_unusual_headers

else if object.get(http.headers, "x-account-id", claims.acc) == claims.acc

query_accounts_are_own if not has_query

else if {
	every parameter in query_parameters {
		trim_prefix(parameter, "account_id=") in {claims.acc, parameter}
	}
}

# What an allow takes away.

headers_to_remove := always_removed if not has_unusual_headers

else := array.concat(always_removed, [name |
	http.headers[name]
	regex.match(`^x[-_]auth[-_]`, name)
	not name in always_removed
	not name in {"x-auth-uid", "x-auth-app", "x-auth-acc", "x-auth-role", "x-auth-iss"}
])

always_removed := [
	"authorization",
	"x-auth_uid", "x_auth-uid", "x_auth_uid",
	"x-auth_app", "x_auth-app", "x_auth_app",
	"x-auth_acc", "x_auth-acc", "x_auth_acc",
	"x-auth_role", "x_auth-role", "x_auth_role",
	"x-auth_iss", "x_auth-iss", "x_auth_iss",
	"x-auth-actor", "x-auth_actor", "x_auth-actor", "x_auth_actor",
]

# Refusals.

reason := "request_invalid" if not request_is_valid

else := "route_unknown" if not route_is_known

else := "token_missing" if not token

else := "token_invalid" if not header_is_valid

else := "token_invalid" if not claims_are_valid

else := "token_invalid" if not iat_fits

else := "token_invalid" if not nbf_fits

else := "token_invalid" if not is_signed

else := "token_expired" if not is_current

else := "role_forbidden" if not role_is_allowed

else := "account_mismatch" if not accounts_are_own

else := "allowed"

refusal := refusals[reason]

refusals := {
	"request_invalid": {"status": 400, "title": "The request is not valid", "headers": {}},
	"route_unknown": {"status": 404, "title": "There is nothing here", "headers": {}},
	"token_missing": {
		"status": 401,
		"title": "A bearer token is required",
		"headers": {"www-authenticate": `Bearer realm="account-authz"`},
	},
	"token_invalid": {
		"status": 401,
		"title": "The bearer token is not valid",
		"headers": {"www-authenticate": `Bearer realm="account-authz", error="invalid_token"`},
	},
	"token_expired": {
		"status": 401,
		"title": "The bearer token has expired",
		"headers": {"www-authenticate": `Bearer realm="account-authz", error="invalid_token"`},
	},
	"role_forbidden": {
		"status": 403,
		"title": "The role may not do this",
		"headers": {"www-authenticate": `Bearer realm="account-authz", error="insufficient_scope"`},
	},
	"account_mismatch": {"status": 403, "title": "The request addresses another account", "headers": {}},
}

request_id := http.headers["x-request-id"] if regex.match(`^[A-Za-z0-9._-]{1,128}$`, http.headers["x-request-id"])

else := uuid.rfc4122("request")

identity := object.filter(claims, ["uid", "app", "acc", "role", "iss"])

known_identity := identity if reason in {"role_forbidden", "account_mismatch"}

else := {}
