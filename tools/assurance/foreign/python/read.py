# Reads queries or paths (one JSON string a line) with Python's parsers and routers. Prints, for each line, a JSON object: parser -> the accounts
# that it reads. Arguments: `queries`, or `paths` and a JSON object of `templates`, most specific first, and `narrowed`.
import io
import json
import sys
from urllib.parse import parse_qs, unquote_to_bytes

from django.conf import settings

settings.configure(DATA_UPLOAD_MAX_NUMBER_FIELDS=None)
from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.wsgi import WSGIRequest
from django.http import QueryDict
from django.urls import URLPattern, URLResolver
from django.urls.resolvers import RegexPattern, RoutePattern
from starlette.requests import Request as StarletteRequest
from starlette.routing import Match, Route
from werkzeug.routing import Map, Rule
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


QUERY_PARSERS = {
    "Django, WSGI": lambda query: WSGIRequest(environ(query)).GET.getlist(PARAMETER),
    "Django, ASGI": lambda query: ASGIRequest(scope(query), io.BytesIO(b"")).GET.getlist(PARAMETER),
    "Django, QueryDict": lambda query: QueryDict(query).getlist(PARAMETER),
    "Starlette": lambda query: StarletteRequest(scope(query)).query_params.getlist(PARAMETER),
    "Werkzeug (Flask)": lambda query: WerkzeugRequest(environ(query)).args.getlist(PARAMETER),
    "urllib.parse": lambda query: parse_qs(query, keep_blank_values=True).get(PARAMETER, []),
    "urllib.parse, separator ;": lambda query: parse_qs(query, separator=";", keep_blank_values=True).get(PARAMETER, []),
}


def served(template, account, narrowed):
    if template in narrowed:
        return ["another route"]
    return [] if account is None else [account]


def routers(templates, narrowed):
    def written(template, parameter, rest):
        for name in ("account_id", "item", "name"):
            template = template.replace(f":{name}", parameter(name))
        return [template[:-2], template[:-1] + rest] if template.endswith("/*") else [template]

    def forms(parameter, rest):
        return [(form, template) for template in templates for form in written(template, parameter, rest)]

    # As WSGI servers pass a path: decoded once, one character for each byte (PEP 3333). ASGI servers decode it as UTF-8.
    def decoded(target):
        return unquote_to_bytes(target.partition("?")[0])

    patterns = [
        URLPattern(RoutePattern(form[1:] + slash, is_endpoint=True), lambda: None, {"template": template})
        for form, template in forms(lambda name: f"<str:{name}>", "<path:rest>")
        for slash in (("",) if form.endswith(">") and "path:" in form else ("", "/"))
    ]
    django = URLResolver(RegexPattern("^/"), patterns)

    def by_django(target):
        match = django.resolve(WSGIRequest({**environ(""), "PATH_INFO": decoded(target).decode("latin-1")}).path_info)
        return served(match.kwargs["template"], match.kwargs.get("account_id"), narrowed)

    routes = [
        (Route(form, lambda request: None), template)
        for form, template in forms(lambda name: "{" + name + "}", "{rest:path}")
    ]

    def by_starlette(target):
        path = decoded(target).decode()
        for route, template in routes:
            match, child = route.matches({"type": "http", "method": "GET", "path": path})
            if match == Match.FULL:
                return served(template, child["path_params"].get("account_id"), narrowed)
        return []

    rules = [
        Rule(form, endpoint=template)
        for form, template in forms(lambda name: f"<{name}>", "<path:rest>")
    ]
    werkzeug = Map(rules, strict_slashes=False, merge_slashes=False).bind("api.test")

    def by_werkzeug(target):
        path = WerkzeugRequest({**environ(""), "PATH_INFO": decoded(target).decode("latin-1")}).path
        template, values = werkzeug.match(path)
        return served(template, values.get("account_id"), narrowed)

    return {"Django": by_django, "Starlette": by_starlette, "Werkzeug (Flask)": by_werkzeug}


def read(parse, query):
    try:
        return parse(query)
    except Exception:
        # The parser refuses the query.
        return []


if sys.argv[1] == "paths":
    layout = json.loads(sys.argv[2])
    parsers = routers(layout["templates"], layout["narrowed"])
else:
    parsers = QUERY_PARSERS
for line in sys.stdin:
    text = json.loads(line)
    print(json.dumps({name: read(parse, text) for name, parse in parsers.items()}))
