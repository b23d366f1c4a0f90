# Reads queries (one JSON string a line) with Python's parsers. Prints, for each line, a JSON object: parser -> the accounts that it reads.
import io
import json
import sys
from urllib.parse import parse_qs

from django.conf import settings

settings.configure(DATA_UPLOAD_MAX_NUMBER_FIELDS=None)
from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.wsgi import WSGIRequest
from django.http import QueryDict
from starlette.requests import Request as StarletteRequest
from werkzeug.wrappers import Request as WerkzeugRequest

PARAMETER = "account_id"


def environ(query):
    return {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/",
        # As WSGI servers pass it (PEP 3333): one character for each byte.
        "QUERY_STRING": query.encode().decode("latin-1"),
        "SERVER_NAME": "api.test",
        "SERVER_PORT": "80",
        "wsgi.input": io.BytesIO(b""),
        "wsgi.url_scheme": "http",
    }


def scope(query):
    return {"type": "http", "method": "GET", "path": "/", "query_string": query.encode(), "headers": []}


PARSERS = {
    "Django, WSGI": lambda query: WSGIRequest(environ(query)).GET.getlist(PARAMETER),
    "Django, ASGI": lambda query: ASGIRequest(scope(query), io.BytesIO(b"")).GET.getlist(PARAMETER),
    "Django, QueryDict": lambda query: QueryDict(query).getlist(PARAMETER),
    "Starlette": lambda query: StarletteRequest(scope(query)).query_params.getlist(PARAMETER),
    "Werkzeug (Flask)": lambda query: WerkzeugRequest(environ(query)).args.getlist(PARAMETER),
    "urllib.parse": lambda query: parse_qs(query, keep_blank_values=True).get(PARAMETER, []),
    "urllib.parse, separator ;": lambda query: parse_qs(query, separator=";", keep_blank_values=True).get(PARAMETER, []),
}


def read(parse, query):
    try:
        return parse(query)
    except Exception:
        # The parser refuses the query.
        return []


for line in sys.stdin:
    query = json.loads(line)
    print(json.dumps({name: read(parse, query) for name, parse in PARSERS.items()}))
