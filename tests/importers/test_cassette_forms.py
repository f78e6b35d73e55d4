"""Cassettes in the forms that older versions and other languages write replay like those of today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

import reenact

ANSWER = (
    '{"id": "c1", "object": "chat.completion", "model": "m", "choices": [{"index": 0, '
    '"finish_reason": "stop",'
    ' "message": {"role": "assistant", "content": "Grüße"}}]}'
)

OF_HTTPX = """\
interactions:
- request:
    body: '{"model": "m"}'
    headers: {accept: ['*/*'], host: [x.test]}
    method: POST
    uri: https://x.test/v1/a
  response:
    content: 'grün'
    headers: {Content-Encoding: [gzip], Content-Length: ['27'], Content-Type: [text/plain]}
    http_version: HTTP/1.1
    status_code: 201
version: 1
"""

OF_HTTPX_BYTES = """\
interactions:
- request: {body: '{"model": "m"}', headers: {host: x.test}, method: POST, uri: 'https://x.test/v1/a'}
  response:
    content: !!binary Z3LDvG4=
    headers: {content-type: text/plain}
    http_version: HTTP/2
    status_code: 201
version: 1
"""

OF_RUBY = """\
---
http_interactions:
- request:
    method: post
    uri: https://x.test/v1/a
    body:
      encoding: UTF-8
      string: ! '{"model": "m"}'
    headers:
      Accept:
      - ! '*/*'
  response:
    status:
      code: 201
      message: Created
    headers:
      Content-Type:
      - text/plain
    body:
      encoding: ASCII-8BIT
      string: !binary |-
        Z3LDvG4=
    http_version:
    adapter_metadata:
      vcr_decompressed: gzip
  recorded_at: Tue, 01 Nov 2011 04:58:44 GMT
recorded_with: VCR 6.3.1
"""

OF_RUBY_1 = """\
---
- !ruby/struct:VCR::HTTPInteraction
  request: !ruby/struct:VCR::Request
    method: :post
    uri: https://x.test/v1/a
    body: !ruby/string:String '{"model": "m"}'
    headers:
      accept:
      - "*/*"
  response: !ruby/struct:VCR::Response
    status: !ruby/struct:VCR::ResponseStatus
      code: 201
      message: Created
    headers:
      content-type:
      - text/plain
    body: grün
    http_version: "1.1"
"""

BEFORE_1 = """\
- request: !!python/object:vcr.request.Request
    body: '{"model": "m"}'
    headers: !!python/object/apply:__builtin__.frozenset
    - - !!python/tuple [Accept, '*/*']
      - !!python/tuple [Host, x.test]
    host: x.test
    method: POST
    path: /v1/a
    port: 443
    protocol: https
  response:
    body: {string: !!python/unicode "gr\\xFCn"}
    headers: ["Content-Type: text/plain\\r\\n", "Date: Wed, 30 Apr 2014 00:00:00 GMT\\r\\n"]
    status: {code: 201, message: Created}
"""

BEFORE_1_JSON = json.dumps([
    {
        "request": {
            "body": '{"model": "m"}', "headers": {"Host": "x.test"}, "host": "x.test", "method": "POST",
            "path": "/v1/a", "port": 443, "protocol": "https",
        },
        "response": {
            "body": {"string": "grün"},
            "headers": ["Content-Type: text/plain\r\n"],
            "status": {"code": 201, "message": "Created"},
        },
    }
])  # fmt: skip

PICKLED = """\
interactions:
- request: !!python/object:vcr.request.Request
    body: !!python/object/new:_io.BytesIO
      state: !!python/tuple
      - !!binary eyJtb2RlbCI6ICJtIn0=
      - 0
      - null
    headers: !!python/object/new:vcr.request.HeadersDict
      state: {_store: {accept: !!python/tuple [Accept, '*/*']}}
    method: POST
    uri: https://x.test/v1/a
  response:
    body: {string: !!python/unicode 'grün'}
    headers: !!python/object/new:requests.structures.CaseInsensitiveDict
      state:
        _store: !!python/object/apply:collections.OrderedDict
        - - - content-type
            - !!python/tuple [Content-Type, text/plain]
    status: {code: 201, message: Created}
version: 1
"""

OF_GO = """\
---
version: 2
interactions:
    - id: 0
      request:
        proto: HTTP/1.1
        proto_major: 1
        proto_minor: 1
        content_length: 14
        host: x.test
        body: '{"model": "m"}'
        form: {}
        headers:
            Accept:
                - '*/*'
        url: https://x.test/v1/a
        method: POST
      response:
        proto: HTTP/2.0
        proto_major: 2
        proto_minor: 0
        content_length: -1
        uncompressed: true
        body: grün
        headers:
            Content-Type:
                - text/plain
        status: 201 Created
        code: 201
        duration: 12.4ms
"""

OF_PHP = """\

-
    request:
        method: POST
        url: 'https://x.test/v1/a'
        headers:
            Host: x.test
            Accept: null
        body: '{"model": "m"}'
    response:
        status:
            http_version: '1.1'
            code: '201'
            message: Created
        headers:
            Content-Type: text/plain
        body: grün
    index: 0
"""

TWO_LISTS = """\
requests:
- body: '{"model": "m"}'
  headers: {}
  method: POST
  uri: https://x.test/v1/a
responses:
- body: {string: grün}
  headers: {Content-Type: [text/plain]}
  status: {code: 201, message: Created}
"""

FORMS: dict[str, str] = {
    "httpx.yaml": OF_HTTPX,
    "httpx-bytes.yaml": OF_HTTPX_BYTES,
    "ruby.yml": OF_RUBY,
    "ruby-1.yml": OF_RUBY_1,
    "before-1.yaml": BEFORE_1,
    "before-1.json": BEFORE_1_JSON,
    "pickled.yaml": PICKLED,
    "go.yaml": OF_GO,
    "php.yml": OF_PHP,
    "lists.yaml": TWO_LISTS,
}


@pytest.mark.parametrize("name", FORMS)
def test_each_form_replays_strictly(tmp_path: Path, name: str) -> None:
    """The request is matched as a whole, and the answer has its status, headers and body."""
    (tmp_path / name).write_text(FORMS[name], encoding="utf-8")
    report = reenact.import_runs(tmp_path / name, tmp_path / "run")
    [run] = report.runs
    assert (report.verdict, run.losses, run.unknown) == ("whole", [], {})
    with reenact.replay(tmp_path / "run"), httpx.Client() as client:
        answer = client.post("https://x.test/v1/a", content='{"model": "m"}')
    assert (answer.status_code, answer.text) == (201, "grün")
    assert answer.headers["content-type"] == "text/plain"


@pytest.mark.parametrize("name", FORMS)
def test_another_body_is_refused(tmp_path: Path, name: str) -> None:
    """What was asked is in the capture."""
    (tmp_path / name).write_text(FORMS[name], encoding="utf-8")
    reenact.import_runs(tmp_path / name, tmp_path / "run")
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"), httpx.Client() as client:
        client.post("https://x.test/v1/a", content='{"model": "n"}')


@pytest.mark.parametrize(("name", "port", "expected"), [
    ("http", 80, "http://x.test/v1/a"),
    ("https", 8443, "https://x.test:8443/v1/a"),
    ("http", "81", "http://x.test:81/v1/a"),
])  # fmt: skip
def test_an_early_request_has_its_address_in_parts(
    tmp_path: Path, name: str, port: Any, expected: str
) -> None:
    """The usual port is not part of an address."""
    [interaction] = json.loads(BEFORE_1_JSON)
    interaction["request"] |= {"protocol": name, "port": port}
    (tmp_path / "it.json").write_text(json.dumps([interaction]))
    reenact.import_runs(tmp_path / "it.json", tmp_path / "run")
    with reenact.replay(tmp_path / "run"), httpx.Client() as client:
        assert client.post(expected, content='{"model": "m"}').status_code == 201


def test_a_model_call_of_an_old_stub_for_httpx_is_one(tmp_path: Path) -> None:
    """Its answer is shown, and its events are pieces."""
    events = 'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}\n\ndata: [DONE]\n\n'
    request = {"method": "POST", "uri": "https://api.openai.com/v1/chat/completions", "headers": {}}
    document = {
        "version": 1,
        "interactions": [
            {
                "request": {
                    **request, "body": json.dumps({"model": "m", "messages": [], "stream": is_streamed}),
                },
                "response": {"content": content, "headers": {"content-type": kind}, "status_code": 200},
            }
            for is_streamed, content, kind in (
                (False, ANSWER, "application/json"), (True, events, "text/event-stream"),
            )
        ],
    }  # fmt: skip
    (tmp_path / "it.json").write_text(json.dumps(document))
    [run] = reenact.import_runs(tmp_path / "it.json", tmp_path / "run").runs
    assert run.counts.model_calls == 2
    kept = (tmp_path / "run/events.jsonl").read_text()
    assert ["Grüße" in kept, "Hi" in kept] == [True, True]


def test_half_a_character_takes_no_interaction_away(tmp_path: Path) -> None:
    """It becomes a replacement character, and that is a loss."""
    document = json.loads(BEFORE_1_JSON)
    document[0]["response"]["body"]["string"] = "gr\ud83dn"
    (tmp_path / "it.json").write_text(json.dumps(document))
    [run] = reenact.import_runs(tmp_path / "it.json", tmp_path / "run").runs
    assert ["half a character" in loss.reason for loss in run.losses] == [True]
    with reenact.replay(tmp_path / "run"), httpx.Client() as client:
        assert client.post("https://x.test/v1/a", content='{"model": "m"}').text == "gr\ufffdn"


def test_one_list_that_is_longer_is_a_loss(tmp_path: Path) -> None:
    """A request without its answer was not recorded whole."""
    (tmp_path / "it.yaml").write_text(
        TWO_LISTS.replace("requests:\n", "requests:\n- {method: GET, uri: 'http://y'}\n")
    )
    report = reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run")
    assert (report.verdict, len(report.runs[0].losses)) == ("partly", 1)


def test_of_an_early_cassette_that_was_cut_off_the_rest_is_read(tmp_path: Path) -> None:
    """A list alone is read item by item, like one with a name."""
    (tmp_path / "it.yaml").write_text(BEFORE_1 + BEFORE_1[: BEFORE_1.index("headers: [")] + "headers: [")
    report = reenact.import_runs(tmp_path / "it.yaml", tmp_path / "run")
    assert (report.verdict, report.runs[0].counts.requests) == ("partly", 1)


def test_a_large_early_cassette_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list alone is read piece by piece, too."""
    monkeypatch.setattr("reenact.importers.source.LARGE_BYTES", 10)
    for name, text in (("it.yaml", BEFORE_1 * 3), ("it.json", json.dumps(json.loads(BEFORE_1_JSON) * 3))):
        (tmp_path / name).write_text(text)
        report = reenact.import_runs(tmp_path / name, tmp_path / f"{name}.run")
        assert (report.verdict, report.runs[0].counts.requests) == ("whole", 3)
