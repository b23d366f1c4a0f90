# An authorization server of Authlib in Flask, with client credentials alone and a set of two keys.
import os

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, grants
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, jsonify
from joserfc.jwk import KeySet, RSAKey

url = os.environ["URL"]
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
options = {"use": "sig", "alg": "RS256"}
keys = KeySet([RSAKey.generate_key(2048, {**options, "kid": kid}, auto_kid=False) for kid in ("k1", "k2")])


class Client(ClientMixin):
    client_id = "billing"

    def get_client_id(self):
        return self.client_id

    def get_allowed_scope(self, scope):
        return scope

    def check_client_secret(self, secret):
        return secret == "secret"

    def check_endpoint_auth_method(self, method, endpoint):
        return True

    def check_grant_type(self, grant):
        return True


class Tokens(JWTBearerTokenGenerator):
    def get_jwks(self):
        return keys.as_dict(private=True)

    def get_extra_claims(self, client, grant_type, user, scope):
        return {"account": "acme", "roles": ["owner"]}


class Grant(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_post"]


app = Flask(__name__)
server = AuthorizationServer(app, query_client=lambda _: Client(), save_token=lambda *_: None)
server.register_grant(Grant)
server.register_token_generator("default", Tokens(issuer=url))
app.post("/token", endpoint="token")(lambda: server.create_token_response())
app.get("/jwks", endpoint="jwks")(lambda: jsonify(keys.as_dict(private=False)))
app.get("/.well-known/openid-configuration", endpoint="metadata")(lambda: jsonify(issuer=url, jwks_uri=url + "/jwks"))
app.run("127.0.0.1", int(os.environ["PORT"]))
