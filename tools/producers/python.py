# Signs tokens with Python libraries: reads the job named by the first argument, prints one JSON line per token.
import json
import sys

import jwt
from jose import jwt as python_jose
from joserfc import jwt as joserfc
from joserfc.jwk import import_key

with open(sys.argv[1], encoding="utf-8") as job_file:
    job = json.load(job_file)


def key_type(alg):
    return {"R": "RSA", "P": "RSA", "E": "OKP" if alg.startswith("Ed") else "EC"}[alg[0]]


libraries = {
    "PyJWT": lambda key, claims: jwt.encode(claims, key["pem"], algorithm=key["alg"], headers={"kid": key["kid"]}),
    "joserfc": lambda key, claims: joserfc.encode(
        {"alg": key["alg"], "kid": key["kid"]},
        claims,
        import_key(key["pem"], key_type(key["alg"])),
        algorithms=[key["alg"]],
    ),
    "python-jose": lambda key, claims: python_jose.encode(
        claims, key["pem"], algorithm=key["alg"], headers={"kid": key["kid"]}
    ),
}
for library, sign in libraries.items():
    for key in job["keys"]:
        for claims in job["claims"]:
            try:
                print(json.dumps({"library": library, "alg": key["alg"], "token": sign(key, dict(claims))}))
            except Exception:
                print(json.dumps({"library": library, "alg": key["alg"]}))
