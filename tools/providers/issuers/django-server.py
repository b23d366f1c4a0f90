# An authorization server of django-oauth-toolkit, with the generator of JWT access tokens that it lacks.
import os
import time
from wsgiref.simple_server import make_server

import django
from django.conf import settings
from jwcrypto import jwk, jwt

url = os.environ["URL"]
key = jwk.JWK.generate(kty="RSA", size=2048)


def make_token(request):
    now, client = int(time.time()), request.client.client_id
    names = dict(iss=url + "/o", sub=client, client_id=client, aud="https://api.example.com")
    claims = dict(**names, iat=now, exp=now + 300, account="acme", role="owner")
    token = jwt.JWT(header=dict(alg="RS256", kid=key.thumbprint(), typ="at+jwt"), claims=claims)
    token.make_signed_token(key)
    return token.serialize()


settings.configure(
    SECRET_KEY="of a trial",
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["127.0.0.1"],
    MIDDLEWARE=[],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATA"] + "/trial.db"}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
    OAUTH2_PROVIDER=dict(
        OIDC_ENABLED=True,
        OIDC_RSA_PRIVATE_KEY=key.export_to_pem(True, None).decode(),
        OIDC_ISS_ENDPOINT=url + "/o",
        SCOPES={"read": ""},
        ACCESS_TOKEN_GENERATOR=make_token,
    ),
)
django.setup()
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.urls import include, path
from oauth2_provider.models import Application

urlpatterns = [path("o/", include("oauth2_provider.urls", namespace="oauth2_provider"))]
call_command("migrate", verbosity=0)
Application.objects.create(
    client_id="billing",
    client_secret="secret",
    client_type="confidential",
    authorization_grant_type="client-credentials",
    algorithm="RS256",
)
make_server("127.0.0.1", int(os.environ["PORT"]), get_wsgi_application()).serve_forever()
