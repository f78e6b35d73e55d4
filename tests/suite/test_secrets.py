"""No secret leaves with the output."""

from time import process_time

import pytest

from tests.suite.runs import call, check, table, trace_of

SECRETS = {
    "private key": "-----BEGIN RSA PRIVATE KEY-----",
    "anthropic key": "sk-ant-" + "a1b2" * 6,
    "openai key": "sk-proj-abcdefghijklmnop1234",
    "aws key id": "AKIAIOSFODNN7EXAMPLE",
    "aws secret": "aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "github token": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "slack token": "xoxb-1234567890-abcdefg",
    "jwt": "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.sig",
    "bearer": "Authorization: Bearer abc123def456ghi789",
    "named": 'MY_API_KEY="abcdef123456789"',
    "in an address": "postgres://app:hunter22@db.example/x",
}
HARMLESS = {
    "prose": "Keep your API key secret and rotate the password often.",
    "a placeholder": "OPENAI_API_KEY=<your key here>",
    "a digest": "sha256:541a1cb07edc3c9f374c99096793519b8d63ba0bf7ae11e0f72111b860593726",
    "an address": "https://example.com/a:b@c",
    "the word bearer": "She is the bearer of unusually important news.",
    "code": "secret = get_secret(name)",
}


@pytest.mark.parametrize("secret", **table(SECRETS))
def test_secrets_are_found_and_not_told(secret):
    """The message shows no more than the first characters."""
    found = check(
        "no_secret_in_output", {}, trace_of(output=f"Here: {secret} ok"), "fail", [], "in the output"
    )
    assert secret not in found.message
    assert secret not in str(found.observed)


@pytest.mark.parametrize("text", **table(HARMLESS))
def test_harmless_texts_pass(text):
    """Talking about secrets is not telling them."""
    check("no_secret_in_output", {}, trace_of(output=text), "pass", [], "found none")


def test_the_whole_run_can_be_searched():
    """Arguments and results too; the evidence is the event."""
    trace = trace_of(call("x"), call("login", "c2", token=SECRETS["github token"]))
    check("no_secret_in_output", {}, trace, "pass", [], "")
    check(
        "no_secret_in_output", {"scope": "everything"}, trace, "fail", ["evt-2"], "an access token ghp_… (40"
    )


def test_authors_add_shapes_and_values():
    """A canary is a value."""
    trace = trace_of(output="id CUST-0042, canary tweet-tweet")
    check("no_secret_in_output", {"patterns": [r"cust-\d+"]}, trace, "fail", [], "a match of a pattern CUST…")
    check("no_secret_in_output", {"values": ["tweet-tweet"]}, trace, "fail", [], "a listed value twee…")


LONG = ("a." * 100_000, "x" * 200_000, "eyJ-" * 50_000, "bearer " * 30_000, "secret=" * 30_000)


@pytest.mark.usefixtures("collector_off")
@pytest.mark.parametrize("text", LONG, ids=[text[:7] for text in LONG])
def test_our_own_shapes_are_linear(text):
    """Long texts are searched to their end, and soon."""
    start = process_time()
    check("no_secret_in_output", {}, trace_of(output=text), "pass", [], "")
    assert process_time() - start < 2
