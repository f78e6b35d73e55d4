"""Secrets planted in payloads: what is planted, where, in which coding. Every value is invented."""

from __future__ import annotations

import gzip
import html
import json
import random
import re
import string
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from html.entities import html5
from itertools import pairwise
from urllib.parse import quote, quote_plus, unquote, urlencode

_WIDE = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def _some(draw: random.Random, size: int, characters: str = _WIDE) -> str:
    # Never all letters: a word is no secret.
    if size < 4:
        return "".join(draw.choice(characters) for _ in range(size))
    return "".join(draw.choice(characters) for _ in range(size - 3)) + f"{draw.randrange(100, 1000)}"


def families(draw: random.Random) -> dict[str, str]:
    """One secret of each family; joined from pieces so that no scanner takes this for a leak."""
    some = lambda size, characters=_WIDE: _some(draw, size, characters)  # noqa: E731 — the table reads better
    upper = string.ascii_uppercase + string.digits
    return {
        "anthropic": "sk-" + "ant-api03-" + some(60),
        "openai": "sk-" + "proj-" + some(48),
        "openrouter": "sk-" + "or-v1-" + some(64, _HEX),
        "gemini": "AI" + "za" + some(35),
        "google access": "ya" + "29." + some(40),
        "google refresh": "1/" + "/0" + some(40),
        "google client": "GOC" + "SPX-" + some(28),
        "aws": "AK" + "IA" + some(16, upper),
        "aws session": "AS" + "IA" + some(16, upper),
        "aws bearer": "AB" + "IA" + some(16, upper),
        "aws context": "AC" + "CA" + some(16, upper),
        "azure": some(3) + "8" + "Q~" + some(34),
        **{f"github {kind}": f"gh{kind}" + "_" + some(36) for kind in "pousr"},
        "github fine": "github" + "_pat_" + some(60),
        **{
            f"gitlab {kind}": f"gl{kind}" + "-" + some(24)
            for kind in ("pat", "oas", "dt", "rt", "cbt", "ptt", "ft", "imt", "agent", "soat", "ffct")
        },
        **{
            f"slack {kind}": f"xox{kind}" + "-" + f"{draw.randrange(10**11)}-" + some(24)
            for kind in "abcdeprs"
        },
        "slack app": "xa" + "pp-1-A0" + some(9, upper) + f"-{draw.randrange(10**12)}-" + some(40, _HEX),
        **{
            f"stripe {kind}": kind + some(24)
            for kind in ("sk_" + "live_", "sk_" + "test_", "rk_" + "live_", "rk_" + "test_", "wh" + "sec_")
        },
        "huggingface": "h" + "f_" + some(34),
        "groq": "gs" + "k_" + some(52),
        "xai": "xa" + "i-" + some(80),
        "npm": "np" + "m_" + some(36),
        "pypi": "pypi-" + "AgEIcHlwaS5vcmc" + some(80),
        "sendgrid": "S" + "G." + some(22) + "." + some(43),
        "telegram": f"{draw.randrange(10**9, 10**10)}:" + "AA" + some(33),
        "discord": "MT" + some(22) + "." + some(6) + "." + some(38),
        "twilio": "S" + "K" + some(32, _HEX),
        "shopify": "shp" + "at_" + some(32, _HEX),
        "databricks": "da" + "pi" + some(32, _HEX),
        "digitalocean": "dop" + "_v1_" + some(64, _HEX),
        "jwt": "ey" + "J" + some(30) + ".ey" + "J" + some(40) + "." + some(43),
        "vault": "hv" + "s." + some(90),
        "linear": "lin" + "_api_" + some(40),
        "grafana": "gl" + "sa_" + some(32) + "_" + some(8, _HEX),
        "grafana api": "eyJrI" + "joi" + some(80),
        "pinecone": "pc" + "sk_" + some(60),
        "e2b": "e2" + "b_" + some(40, _HEX),
        "langfuse": "sk" + "-lf-" + "-".join(some(size, _HEX) for size in (8, 4, 4, 4, 12)),
        "tailscale": "tskey-" + "auth-" + some(12, upper) + "-" + some(32, upper),
        "cloudflare origin": "v1." + "0-" + some(24, _HEX) + "-" + some(146, _HEX),
        "yandex": "AQ" + "VN" + some(36),
        "yandex access": "t1" + "." + some(30) + "." + some(86),
        "clickhouse": "4b" + "1d" + some(38),
        "scalingo": "tk-" + "us-" + some(48),
        "infracost": "ic" + "o-" + some(32),
        "defined networking": "dn" + "key-" + some(26) + "-" + some(52),
        "render": "rn" + "d_" + some(28),
        "neon": "na" + "pi_" + some(64),
        "slack webhook": "https://hooks.slack.com/services/T" + some(9) + "/B" + some(9) + "/" + some(24),
        "discord webhook": f"https://discord.com/api/webhooks/{draw.randrange(10**18)}/" + some(60),
        "softlayer": "https://api.softlayer.com/soap/v3/" + some(64, _HEX),
        "maxmind": some(6) + "_" + some(29) + "_mm" + "k",
        "artifactory": "cm" + "Vmd" + some(59),
        "clojars": "CLO" + "JARS_" + some(60),
        "sourcegraph": "sg" + "p_" + some(16, _HEX) + "_" + some(40, _HEX),
        "octopus": "AP" + "I-" + some(26, upper),
        "harness": "pa" + "t." + some(22) + "." + some(24) + "." + some(20),
        "readme": "rd" + "me_" + some(70, string.ascii_lowercase + string.digits),
        "intra42": "s-s4" + "t2ud-" + some(64, _HEX),
        "1password": "A" + "3-" + "-".join(some(size, upper) for size in (6, 6, 5, 5, 5, 5)),
        "adobe": "p8" + "e-" + some(32),
        "authress": "s" + "c_" + some(12) + "." + some(5) + ".acc_" + some(20) + "." + some(60),
        "frameio": "fi" + "o-u-" + some(64),
        "typeform": "tf" + "p_" + some(59),
        "settlemint": "sm_" + "pat_" + some(16),
        "hubspot": "pat-" + "na1-" + "-".join(some(size, _HEX) for size in (8, 4, 4, 4, 12)),
        "mapbox": "sk." + "eyJ" + some(60) + "." + some(22),
        "posthog": "ph" + "x_" + some(44),
        "resend": "r" + "e_" + some(8) + "_" + some(24),
        "plaid": "access-" + "sandbox-" + "-".join(some(size, _HEX) for size in (8, 4, 4, 4, 12)),
        "shippo": "ship" + "po_live_" + some(40, _HEX),
        "duffel": "duff" + "el_test_" + some(43),
        "square": "EA" + "AA" + some(30) + "-_" + some(28),
        "gocardless": "live" + "_" + some(36) + "aB12",
        "airtable": "pa" + "t" + some(14) + "." + some(64, _HEX),
        "atlassian": "ATATT" + "3xFfGF0" + some(100) + "=" + some(8, _HEX),
        "hashicorp": some(14) + ".atlas" + "v1." + some(64),
        "url": "postgres://bob:" + some(20) + "@db.example:5432/x",
        "twilio, uppercase": "S" + "K" + some(32, "0123456789ABCDEF"),
    }


SECRET_NAMES = (
    *("password", "client_secret", "api_key", "apiKey", "access_token", "refresh_token", "private_key"),
    *("DB_PASSWORD", "X-Api-Key", "authToken", "passphrase", "signing_key", "csrf_token", "credential"),
)
HEADER_NAMES = (
    *("session", "x-session-id", "mcp-session-id", "x-session-cookie", "x-token-v2", "token-id", "secret-id"),
    *("x-csrf-token-value", "x-auth", "x-auth-user", "authentication", "api-key", "x-key", "x-signing-key"),
    *("x-secret", "x-password", "x-credential", "cookie", "x-goog-api-key", "idempotency-key", "x-sessionid"),
    *("x-userkey", "keyid", "passkey", "x-reauth", "preauth-id"),
)

Place = Callable[[str, str], str]
"""A name and a value to a text in which a name beside a value tells that it is secret."""

NAMED_PLACES: dict[str, Place] = {
    "json": lambda name, value: json.dumps({"a": [{name: value}]}),
    "json, spaced": lambda name, value: json.dumps({name: value}).replace('":', '" :'),
    "json in json": lambda name, value: json.dumps({"arguments": json.dumps({name: value})}),
    "json thrice": lambda name, value: json.dumps({"a": json.dumps({"b": json.dumps({name: value})})}),
    "pairs": lambda name, value: json.dumps({"form": [["grant_type", "x"], [name, value]]}),
    "pairs in json": lambda name, value: json.dumps({"a": json.dumps([["b", "c"], [name, value]])}),
    "one pair": lambda name, value: json.dumps({"form": [[name, value]]}),
    "name and value": lambda name, value: json.dumps([{"name": name, "value": value}]),
    "key and value": lambda name, value: json.dumps([{"key": name, "type": "text", "value": value}]),
    "value first": lambda name, value: json.dumps([{"value": value, "name": name}]),
    "list": lambda name, value: json.dumps({name: [value, value]}),
    "arguments": lambda name, value: json.dumps({"args": ["tool", f"--{name}", value, "--verbose"]}),
    "arguments, joined": lambda name, value: json.dumps({"args": ["tool", f"--{name}={value}"]}),
    "command line": lambda name, value: f"tool run --{name} {value} --verbose",
    "form": lambda name, value: urlencode({"grant_type": "x", name: value, "scope": "a b"}),
    "nested form": lambda name, value: urlencode({f"user[{name}]": value}),
    "query": lambda name, value: f"GET /x?{urlencode({'a': 1, name: value})} HTTP/1.1",
    "url": lambda name, value: f"see https://h.example/p?{urlencode({name: value})}&x=1 for it",
    "multipart": lambda name, value: (
        f'--b1\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        f'--b1\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n--b1--\r\n'
    ),
    "part": lambda name, value: json.dumps(
        {"parts": [{"content": value, "headers": {"content-disposition": f'form-data; name="{name}"'}}]}
    ),
    "xml element": lambda name, value: f"<login><user>bob</user><{name}>{value}</{name}></login>",
    "xml cdata": lambda name, value: f"<a:login><a:{name}><![CDATA[{value}]]></a:{name}></a:login>",
    "xml attribute": lambda name, value: f'<login user="bob" {name}="{value}"/>',
    "xml setting": lambda name, value: f'<add key="{name}" value="{value}" />',
    "graphql": lambda name, value: json.dumps({"query": "mutation($v: X) {a}", "variables": {name: value}}),
    "graphql argument": lambda name, value: f'mutation {{ login(user: "bob", {name}: "{value}") {{ id }} }}',
    "ini": lambda name, value: f"[db]\nhost = localhost\n{name} = {value}\nport = 5432\n",
    "dotenv": lambda name, value: f"HOST=localhost\n{name}={value}\nPORT=5432\n",
    "yaml": lambda name, value: f"host: localhost\n{name}: {value}\nport: 5432\n",
    "python": lambda name, value: f"connect(host='h', {name}='{value}')",
    "repr": lambda name, value: repr({"host": "h", name: value}),
    "repr of pairs": lambda name, value: repr([("user", "bob"), (name, value)]),
    "repr of raw pairs": lambda name, value: repr([(b"user", b"bob"), (name.encode(), value.encode())]),
    "k and v": lambda name, value: json.dumps([{"k": name, "v": value}]),
    "json over lines, in json": lambda name, value: json.dumps({"a": f'{{"{name}"\n:\n"{value}"}}'}),
    "yaml list": lambda name, value: (
        f"env:\n  - name: {name}\n    value: {value}\n  - name: X\n    value: y\n"
    ),
    "yaml list in json": lambda name, value: json.dumps({"a": f"- name: {name}\n  value: '{value}'\n"}),
    "yaml block": lambda name, value: f"db:\n  host: h\n  {name}: |\n    {value}\n  port: 5\n",
    "xml cdata, spaced": lambda name, value: f"<a><{name}>\n  <![CDATA[{value}]]>\n</{name}></a>",
    "xml other quotes": lambda name, value: f"<a {name}='{value}\"x'/>",
    "plist": lambda name, value: f"<dict><key>{name}</key>\n<string>{value}</string></dict>",
    "html value first": lambda name, value: f'<input value="{value}" type="hidden" name="{name}">',
    "html meta": lambda name, value: f'<meta name="{name}" content="{value}">',
    "graphql block": lambda name, value: f'mutation {{ login({name}: """{value}""") {{ id }} }}',
    "multipart, other case": lambda name, value: (
        f'--b\ncontent-disposition: FORM-DATA; charset=utf-8; name="{name}"\nX: y\n\n{value}\n--b--\n'
    ),
    "multipart, coded name": lambda name, value: (
        f"--b\r\nContent-Disposition: form-data; name*=UTF-8''{name}\r\n\r\n{value}\r\n--b--\r\n"
    ),
    "multipart, single quotes": lambda name, value: (
        f"--b\r\nContent-Disposition: form-data; name='{name}'\r\n\r\n{value}\r\n--b--\r\n"
    ),
    "form, array": lambda name, value: f"{name}[]={quote_plus(value)}&x=1",
    "form, dotted": lambda name, value: f"user.{name}={quote_plus(value)}&x=1",
    "form, semicolons": lambda name, value: f"a=b;{name}={quote_plus(value)};c=d",
    "connection string": lambda name, value: f"Server=h;User Id=sa;{name}={value};Encrypt=true",
    "settings of a line": lambda name, value: f"host=h user=bob {name}={value} dbname=x",
    "properties": lambda name, value: f"# db\ndb.host=h\ndb.{name}={value}\n",
    "npmrc": lambda name, value: f"//registry.example/:_{name}={value}\n",
    "option with one dash": lambda name, value: json.dumps({"args": ["x", f"-{name}", value]}),
    "option of java": lambda name, value: json.dumps({"args": ["java", f"-D{name}={value}"]}),
    "url-encoded json": lambda name, value: (
        f"https://h.example/?variables={quote(json.dumps({name: value}))}"
    ),
    "siblings, other words": lambda name, value: json.dumps({"ParameterKey": name, "ParameterValue": value}),
    "siblings, far apart": lambda name, value: json.dumps(
        {"name": name, "about": "x " * 900, "value": value}
    ),
    "siblings, nested": lambda name, value: json.dumps([{"key": name, "value": {"stringValue": value}}]),
    "siblings, printed": lambda name, value: repr({"name": name, "type": "x", "value": value}),
    "siblings in code": lambda name, value: f"[{{ value: '{value}', name: '{name}' }}]",
    "patch": lambda name, value: json.dumps([{"op": "add", "path": f"/db/{name}", "value": value}]),
    "object with a value": lambda name, value: json.dumps({name: {"type": "x", "value": value}}),
    "list in a pair": lambda name, value: json.dumps({"a": [["b", ["c"]], [name, [value]]]}),
    "json, cut off": lambda name, value: f'{{"a": 1, "{name}": "{value}',
    "json in html": lambda name, value: f'<a b="{html.escape(json.dumps({name: value}))}">',
    "form, coded name": lambda name, value: (
        f"a=b&{name.replace('_', '%5F').replace('-', '%2D')}={quote_plus(value)}"
    ),
    "multipart, dashes in a value": lambda name, value: (
        f'--b1\r\nContent-Disposition: form-data; name="{name}"\r\n\r\na\r\n--x\r\n{value}\r\n--b1--\r\n'
    ),
    "multipart, folded": lambda name, value: (
        f'--b1\r\nContent-Disposition: form-data;\r\n name="{name}"\r\n\r\n{value}\r\n--b1--\r\n'
    ),
    "xml, nested value": lambda name, value: f"<a><{name}><Value>{value}</Value></{name}></a>",
    "xml-rpc": lambda name, value: (
        f"<member><name>{name}</name><value><string>{value}</string></value></member>"
    ),
    "xml, property": lambda name, value: f'<property name="{name}"><value>{value}</value></property>',
    "xml, comment": lambda name, value: f"<a><{name}><!-- x -->{value}</{name}></a>",
    "xml, mixed": lambda name, value: f"<a><{name}>{value}<br/></{name}></a>",
    "xml, cut off": lambda name, value: f"<a><{name}>{value}",
    "xml, sign in an attribute": lambda name, value: f'<a b="x>y" {name}="{value}"/>',
    "xml, escaped": lambda name, value: f"&lt;{name}&gt;{value}&lt;/{name}&gt;",
    "dotenv, spaces": lambda name, value: f"HOST=h\n{name}='{value} and more'\n",
    "dotenv, lines": lambda name, value: f'HOST=h\nexport {name}="{value}\nmore"\nPORT=5\n',
    "yaml, list of objects": lambda name, value: f"users:\n  - id: b\n    {name}: {value}\n",
    "yaml, next line": lambda name, value: f"x: y\n{name}:\n  {value}\nb: c\n",
    "yaml, list below": lambda name, value: f"x: y\n{name}:\n  - {value}\n  - {value}\n",
    "yaml, question": lambda name, value: f"? {name}\n: {value}\n",
    "yaml list, value first": lambda name, value: f"env:\n- value: {value}\n  name: {name}\n",
    "yaml list, more between": lambda name, value: f"env:\n- name: {name}\n  kind: x\n  value: {value}\n",
    "yaml in markdown": lambda name, value: f"So:\n\n```yaml\nhost: h\n{name}: {value}\n```\n",
    "toml, lines": lambda name, value: f'{name} = """\n{value}"""\n',
    "annotated": lambda name, value: f"{name.replace('-', '_')}: str = '{value}'",
    "graphql default": lambda name, value: f'query L(${name.replace("-", "_")}: String! = "{value}") {{ x }}',
    "bytes": lambda name, value: repr({name: value.encode()}),
    "wrapped": lambda name, value: f"Settings({name.replace('-', '_')}=SecretStr('{value}'))",
    "data of curl": lambda name, value: f"curl -d {name}={value} https://h.example",
    "url-encoded json, plus": lambda name, value: f"q={quote_plus(json.dumps({'a': 1, name: value}))}&x=1",
    "csv": lambda name, value: f"user,{name},role\nbob,{value},admin\nann,{value},user\n",
    "csv, last": lambda name, value: f"user,{name}\r\nbob,{value}\r\n",
    "csv, quoted": lambda name, value: f'"user";"{name}"\n"bob";"{value}"\n',
    "csv in json": lambda name, value: json.dumps({"a": f'"user","{name}"\n"bob","{value}"\n'}),
    "tabs": lambda name, value: f"id\t{name}\tuser\n1\t{value}\tbob\n",
    "columns and rows": lambda name, value: json.dumps({"columns": ["user", name], "rows": [["b", value]]}),
    "rows": lambda name, value: json.dumps(
        [["user", name, "role"], ["bob", value, "x"], ["ann", value, "y"]]
    ),
    "insert of sql": lambda name, value: (
        f"INSERT INTO users (name, {name}) VALUES ('bob', '{value}'),\n ('ann', '{value}')"
    ),
    "setter": lambda name, value: f'os.putenv("{name}", "{value}")',
    "filled in": lambda name, value: f"page.fill('#{name}', '{value}')",
}
"""The words before the value are the name's own: XML and YAML allow no others."""

LIKELY_PLACES: dict[str, Place] = {
    "comparison": lambda name, value: f'if {name.replace("-", "_")} == "{value}":',
    "markdown": lambda name, value: f"| user | {name} |\n|---|---|\n| bob | {value} |\n",
    "html": lambda name, value: (
        f"<table><tr><th>user</th><th>{name}</th></tr><tr><td>bob</td><td>{value}</td></tr></table>"
    ),
    "arrow": lambda name, value: f"{name}->{value}",
    "arrow, in unicode": lambda name, value: f"{name} → {value}",
    "every second item": lambda name, value: json.dumps(["user", "bob", name, value]),
    "odbc": lambda name, value: f"Driver={{x}};Server=h;UID=sa;{name}={{{value}}};",
    "member of an object": lambda name, value: json.dumps({name: {"current": value, "since": "May"}}),
    "below a value": lambda name, value: json.dumps({"name": name, "value": {"text": value}}),
}
"""Where a value must hold a digit: words stand there, too."""

NEARBY_PLACES: dict[str, Place] = {
    "is": lambda name, value: f"The {name} is {value}.",
    "is, quoted": lambda name, value: f"your {name} is '{value}' now",
    "is now": lambda name, value: f"The new {name} is now {value}, bye",
    "was": lambda name, value: f"{name} was {value}",
    "set to": lambda name, value: f"I have set the {name} to {value} for you",
    "of": lambda name, value: f"with a {name} of {value}",
    "paren": lambda name, value: f"log in with the {name} ({value})",
    "paren quoted": lambda name, value: f'the {name} ("{value}") works',
    "brackets": lambda name, value: f"{name} [{value}]",
    "backticks both": lambda name, value: f"`{name}` `{value}`",
    "bold both": lambda name, value: f"**{name}**: **{value}**",
    "bullet dash": lambda name, value: f"- {name} - {value}",
    "en dash": lambda name, value: f"{name} – {value}",
    "space": lambda name, value: f"{name} {value}",
    "tab": lambda name, value: f"user\tbob\n{name}\t{value}\n",
    "padded": lambda name, value: f"user          bob\n{name}      {value}\n",
    "dots": lambda name, value: f"{name} ........ {value}",
    "redis hset": lambda name, value: f"HSET user:1 name bob {name} {value}",
    "redis resp": lambda name, value: (
        f"*3\r\n$3\r\nSET\r\n${len(name)}\r\n{name}\r\n${len(value)}\r\n{value}\r\n"
    ),
    "python list": lambda name, value: repr(["user", "bob", name, value]),
    "python set": lambda name, value: "{" + f"'{name}', '{value}'" + "}",
    "question/answer": lambda name, value: json.dumps({"question": name, "answer": value}),
    "prompt/response": lambda name, value: json.dumps({"prompt": f"Enter {name}:", "response": value}),
    "title/body": lambda name, value: json.dumps({"title": name, "body": value}),
    "kind/data": lambda name, value: json.dumps({"kind": name, "payload": value}),
    "selector": lambda name, value: json.dumps({"selector": f"#{name}", "text": value}),
    "element": lambda name, value: json.dumps({"element": f"{name} field", "text": value}),
    "action": lambda name, value: json.dumps(
        {"action": "type", "target": f"input[name={name}]", "input": value}
    ),
    "setx": lambda name, value: f"setx {name.upper()} {value}",
    "ENV": lambda name, value: f"FROM x\nENV {name.upper()} {value}\n",
    "one dash": lambda name, value: f"tool -{name} {value}",
    "lisp": lambda name, value: f'(connect :user "bob" :{name} "{value}")',
    "lisp bare": lambda name, value: f'(setq {name} "{value}")',
    "lisp dotted": lambda name, value: f'((user . "bob") ({name} . "{value}"))',
    "tcl": lambda name, value: f"set {name} {{{value}}}",
    "spaced arrow": lambda name, value: f"{name} -> {value}",
    "erlang": lambda name, value: f'{{{name}, "{value}"}}',
    "erlang binary": lambda name, value: f'{{{name}, <<"{value}">>}}',
    "clojure": lambda name, value: f'{{:user "b" :{name} "{value}"}}',
    "html bare attr": lambda name, value: f"<input name={name} value={value}>",
    "html label input": lambda name, value: f'<label>{name}</label><input type=text value="{value}">',
    "html strong": lambda name, value: f"<p><strong>{name}:</strong> {value}</p>",
    "html span": lambda name, value: f"<span>{name}</span> <span>{value}</span>",
    "html code": lambda name, value: f"<li>{name}: <code>{value}</code></li>",
    "a11y": lambda name, value: f'- textbox "{name}" [ref=e12]: {value}',
    "a11y2": lambda name, value: f"textbox '{name}' value='{value}'",
    "terraform": lambda name, value: f'variable "{name}" {{\n  default = "{value}"\n}}\n',
    "php var_dump": lambda name, value: f'["{name}"]=>\n  string({len(value)}) "{value}"\n',
    "php serialized": lambda name, value: f'a:1:{{s:{len(name)}:"{name}";s:{len(value)}:"{value}";}}',
    "lua": lambda name, value: f'conf["{name}"] = [[{value}]]',
    "perl": lambda name, value: f"${name} = q{{{value}}};",
    "vb": lambda name, value: f'Dim {name} As String = "{value}"',
    "c define": lambda name, value: f'#define {name.upper()} "{value}"',
    "c array": lambda name, value: f'const char {name}[] = "{value}";',
    "cmake": lambda name, value: f'set({name} "{value}")',
    "apache": lambda name, value: f"SetEnv {name.upper()} {value}",
    "nginx": lambda name, value: f"proxy_set_header X-{name} {value};",
    "nginx fastcgi": lambda name, value: f"fastcgi_param {name.upper()} {value};",
    "wifi": lambda name, value: f"wpa_{name} {value}",
    "ssh config": lambda name, value: f"Host x\n  User bob\n  {name} {value}\n",
    "netrc": lambda name, value: f"machine h login bob {name} {value}",
    "pgpass": lambda name, value: f"-- {name}\n{value}\n",
    "heading": lambda name, value: f"## {name}\n\n{value}\n",
    "next line": lambda name, value: f"{name.title()}:\n{value}\n",
    "prompt2": lambda name, value: f"{name} for bob: {value}",
    "prompt4": lambda name, value: f"[sudo] {name} for bob: {value}",
    "log angle": lambda name, value: f"{name}=<{value}>",
    "log pipe": lambda name, value: f"user|bob|{name}|{value}",
    "slash": lambda name, value: f"{name}/{value}",
    "url path": lambda name, value: f"https://h.example/reset/{name}/{value}",
    "yaml anchor": lambda name, value: f"{name}: &p {value}\n",
    "yaml tag": lambda name, value: f"{name}: !!str {value}\n",
    "yaml quoted lines": lambda name, value: f'{name}: "{value}\\\n  more"\n',
    "toml array": lambda name, value: f'[[users]]\n{name} = ["{value}"]\n',
    "protobuf nested": lambda name, value: f'{name} {{ value: "{value}" }}',
    "setattr": lambda name, value: f"setattr(obj, '{name}', '{value}')",
    "expect": lambda name, value: f'expect "{name}:" {{ send "{value}\\r" }}',
    "sendkeys": lambda name, value: f"driver.find_element(By.ID, '{name}').send_keys('{value}')",
    "autofill": lambda name, value: f"await page.locator('#{name}').fill('{value}')",
    "csv row": lambda name, value: f"{name},{value}\n",
    "csv row 3": lambda name, value: f"setting,{name},{value}\nsetting,host,h\n",
    "psql": lambda name, value: f" id | {name} \n----+----------\n  1 | {value}\n",
    "psql expanded": lambda name, value: f"-[ RECORD 1 ]\nid | 1\n{name} | {value}\n",
    "box table": lambda name, value: f"│ {name} │ {value} │",
    "xml sibling": lambda name, value: f"<entry><string>{name}</string><string>{value}</string></entry>",
    "asciidoc": lambda name, value: f"{name}:: {value}",
    "json nested arr": lambda name, value: json.dumps({"fields": [{"n": name, "x": value}]}),
    "with": lambda name, value: f'login with {name} "{value}"',
    "ws subprotocol": lambda name, value: f"Sec-WebSocket-Protocol: {name}, {value}",
    "emoji": lambda name, value: f"🔑 {name} 👉 {value}",
    "guillemets": lambda name, value: f"{name} «{value}»",
    "curly quotes 2": lambda name, value: f"the {name} ‘{value}’",
    "nbsp": lambda name, value: f"{name}:\u00a0{value}",
}
"""Where a reader sees a name beside a value, in no notation that has a rule of its own."""

PASSWORD_PLACES: dict[str, Callable[[str], str]] = {
    "option of powershell": lambda value: f"Connect-It -User bob -Password {value} -Force",
    "setx": lambda value: f"setx PASSWORD {value}",
    "docker": lambda value: f"FROM x\nENV DB_PASSWORD {value}\n",
    "fish": lambda value: f"set -gx DB_PASSWORD {value}",
    "lisp": lambda value: f'(login :user "bob" :client-secret "{value}")',
    "tcl": lambda value: f'set api_key "{value}"',
    "sql": lambda value: f"CREATE USER bob WITH PASSWORD '{value}'",
    "mysql": lambda value: f"ALTER USER bob IDENTIFIED BY '{value}'",
    "mysql, plugin": lambda value: f"CREATE USER bob IDENTIFIED WITH caching_sha2 BY '{value}'",
    "netrc": lambda value: f"machine h.example\n  login bob\n  password {value}\n",
    "basic": lambda value: f'session.get(url, auth=aiohttp.BasicAuth("bob", "{value}"))',
    "raw headers": lambda value: repr([(b"date", b"x"), (b"session", value.encode())]),
    "place": lambda value: repr((b"location", f"/ok?access_token={quote_plus(value)}&x=1".encode())),
    "place, at the end": lambda value: repr((b"location", f"/ok?access_token={quote_plus(value)}".encode())),
    "printed": lambda value: f"final password={value}x-!\n",
    "export": lambda value: f"export DB_PASSWORD={value}\n",
    "dockerfile": lambda value: f"FROM x\nENV DB_PASSWORD={value}\n",
    "dotenv with signs": lambda value: f"# settings\nAPI_TOKEN=a1(b)2;c{{d}}{value}\nPORT=5432\n",
}
"""Where a language of its own says what follows."""

SHAPED_PLACES: dict[str, Callable[[str], str]] = {
    "prose": lambda value: f"The key is {value}, keep it.",
    "json": lambda value: json.dumps({"text": f"out: {value}\n"}),
    "json in json": lambda value: json.dumps({"a": json.dumps({"b": f'"{value}"'})}),
    "bearer": lambda value: f"curl -H 'Authorization: Bearer {value}' https://h.example",
    "error": lambda value: f"AuthenticationError: Incorrect API key provided: {value}.",
    "markdown": lambda value: f"- `{value}`\n",
    "base64": lambda value: "data:" + b64encode(f"key {value} end".encode()).decode(),
    "base64, url-safe": lambda value: urlsafe_b64encode(f"k={value}".encode()).decode(),
    "url": lambda value: f"https://h.example/hooks/x?next={quote(f'/a/{value}/b', safe='')}",
    "xml": lambda value: f"<note>{value}</note>",
    "log": lambda value: f"2026-01-01T00:00:00Z INFO sent {value} to 10.0.0.1",
    "list": lambda value: json.dumps([1, value, {"x": [value]}]),
    "key": lambda value: json.dumps({value: 1}),
}


_NAMED_SIGNS = {sign: name for name, sign in html5.items() if name[-1] == ";" and len(sign) == 1}


def _each_sign(write: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: re.sub("[^A-Za-z0-9]", lambda sign: write(sign[0]), text)


_percent = _each_sign(lambda sign: f"%{ord(sign):02X}")
_decimal = _each_sign(lambda sign: f"&#{ord(sign)};")

CODINGS: dict[str, Callable[[str], str]] = {
    "percent": lambda value: f"https://h.example/?q={_percent(value)}&a=b",
    "percent, twice": lambda value: f"https://h.example/?q={_percent(_percent(value))}&a=b",
    "percent, every character": lambda value: "q=" + "".join(f"%{ord(sign):02x}" for sign in value),
    "percent, in json": lambda value: "q=" + quote(json.dumps({"k": value})),
    "entities": lambda value: f"<p>{_decimal(value)}</p>",
    "entities, twice": lambda value: f"<p>{html.escape(_decimal(value))}</p>",
    "entities, hexadecimal": _each_sign(lambda sign: f"&#x{ord(sign):X};"),
    "entities, by name": _each_sign(
        lambda sign: f"&{_NAMED_SIGNS.get(sign, f'#{ord(sign):04}')}".rstrip(";") + ";"
    ),
    "entities, every character": lambda value: "".join(f"&#{ord(sign)};" for sign in value),
    "literal": lambda value: f"k = '{_each_sign(lambda sign: f'{chr(92)}x{ord(sign):02x}')(value)}'",
    "literal, unicode": lambda value: f"k = '{_each_sign(lambda sign: f'{chr(92)}u{ord(sign):04x}')(value)}'",
    "colour": lambda value: f"key:\x1b[31m{value}\x1b[0m done",
    "colour, after a word": lambda value: f"key\x1b[38;5;196m{value}\x1b[0m done",
    "colour, inside": lambda value: f"key {value[:6]}\x1b[1m{value[6:9]}\x1b[m{value[9:]} done",
    "base64": lambda value: "data:" + b64encode(f"key {value} end".encode()).decode(),
    "base64, twice": lambda value: b64encode(b64encode(f"the key is {value} ok".encode())).decode(),
    "base64, in percent": lambda value: "q=" + quote(b64encode(f"key {value} end..".encode()), safe=""),
}
"""How a value can be written otherwise, one coding around the other too."""


def undone(text: str) -> str:
    """*text* and all that its codings may hide."""
    seen, texts = {text}, [text]
    for each in texts:
        plain = re.sub("\x1b\\[[0-9;]*m", "", each)
        plain = re.sub(r"\\\\(?:x|u00)([0-9a-f]{2})", lambda code: chr(int(code[1], 16)), plain)
        found = [html.unescape(unquote(plain))]
        found += [
            b64decode(run[: len(run) // 4 * 4]).decode("latin-1")
            for run in re.findall(r"[A-Za-z0-9+/]{20,}={0,2}", plain)
        ]
        texts += [new for new in found if new not in seen]
        seen.update(found)
    return "\n".join(texts)


def deltas(text: str, draw: random.Random) -> dict[str, bytes]:
    """Streams in which *text* is cut over events that take turns with those of another output."""
    cuts = sorted(draw.sample(range(1, len(text)), min(4, len(text) - 1)))
    pieces = [text[start:end] for start, end in pairwise((0, *cuts, len(text)))]
    return {name: b"".join(_turns(make, pieces)) for name, make in _EVENTS.items()}


def _turns(make: Callable[[int, str], object], pieces: list[str]) -> Iterator[bytes]:
    for number, piece in enumerate(pieces):
        for index, text in ((0, f"word{number} "), (1, piece)):
            yield f"data: {json.dumps(make(index, text))}\n\n".encode()


_EVENTS: dict[str, Callable[[int, str], object]] = {
    "choices": lambda index, piece: {"choices": [{"index": index, "delta": {"content": piece}}]},
    "tool calls": lambda index, piece: {
        "choices": [
            {"index": 0, "delta": {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}}
        ]
    },
    "responses": lambda index, piece: {
        "type": "response.output_text.delta",
        "item_id": f"msg_{index}",
        "output_index": index,
        "content_index": 0,
        "delta": piece,
    },
    "blocks": lambda index, piece: {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": "input_json_delta", "partial_json": piece},
    },
    "candidates": lambda index, piece: {
        "candidates": [{"content": {"parts": [{"text": piece}]}, "index": index}]
    },
}


def holds(data: bytes, secret: str) -> bool:
    """Whether *data* still holds *secret* in clear, or in a coding that anyone undoes."""
    plain = secret.encode()
    forms = {plain, quote(secret, safe="").encode(), json.dumps(secret)[1:-1].encode(), plain.hex().encode()}
    for before in range(3):
        encoded = b64encode(b"\0" * before + plain).rstrip(b"=")
        forms |= {encoded[4:-2], encoded[4:-2].replace(b"+", b"-").replace(b"/", b"_")}
    return any(form in data for form in forms) or (
        data[:2] == b"\x1f\x8b" and holds(gzip.decompress(data), secret)
    )
