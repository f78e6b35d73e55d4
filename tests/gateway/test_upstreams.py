"""Whom a name stands for, and what leads a program to the gateway."""

import pytest

from reenact.errors import UsageError
from reenact.gateway.upstreams import read_upstreams, upstreams_of, variables

DEFAULTS = {
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "ollama": "http://127.0.0.1:11434",
    "openai": "https://api.openai.com/v1",
}


def test_without_a_word_from_the_user_the_providers_own_addresses_are_meant():
    """As their SDKs have them."""
    assert upstreams_of({}) == DEFAULTS


FOUND = {
    "a base URL": ({"OPENAI_BASE_URL": "https://x/v1/"}, (), {"openai": "https://x/v1"}),
    "the older name": ({"OPENAI_API_BASE": "https://y/v1"}, (), {"openai": "https://y/v1"}),
    "the newer of both": (
        {"OPENAI_API_BASE": "https://y", "OPENAI_BASE_URL": "https://x"},
        (),
        {"openai": "https://x"},
    ),
    "an empty one": ({"ANTHROPIC_BASE_URL": ""}, (), {}),
    "a host": ({"OLLAMA_HOST": "box"}, (), {"ollama": "http://box:11434"}),
    "a host with its port": ({"OLLAMA_HOST": "box:80"}, (), {"ollama": "http://box:80"}),
    "a server's own address": ({"OLLAMA_HOST": "0.0.0.0"}, (), {"ollama": "http://127.0.0.1:11434"}),
    "a URL": ({"OLLAMA_HOST": "https://box/llm"}, (), {"ollama": "https://box/llm"}),
    "a given name": ({}, ["my-llm=http://box:1/v1"], {"my-llm": "http://box:1/v1"}),
    "a given known name": ({"OPENAI_BASE_URL": "https://x"}, ["openai=http://z"], {"openai": "http://z"}),
}


@pytest.mark.parametrize(("environ", "given", "found"), FOUND.values(), ids=FOUND)
def test_what_the_user_says_is_the_upstream(environ, given, found):
    """By variable or by option, and the option goes first."""
    assert upstreams_of(environ) | read_upstreams(given) == DEFAULTS | found


REFUSED = {
    "no URL": ({}, ["openai"], "--upstream openai: is not a base URL"),
    "no name": ({}, ["=http://x"], "--upstream =http://x: is not NAME=URL"),
    "a name with a slash": ({}, ["a/b=http://x"], "--upstream a/b=http://x: is not NAME=URL"),
    "another scheme": ({}, ["a=ftp://x"], "--upstream a=ftp://x: is not a base URL"),
    "no host": ({}, ["a=http://"], "--upstream a=http://: is not a base URL"),
    "a port that is none": ({}, ["a=http://x:y"], "--upstream a=http://x:y: is not a base URL"),
    "a variable": ({"OPENAI_BASE_URL": "x/v1"}, (), "OPENAI_BASE_URL=x/v1: is not a base URL"),
}


@pytest.mark.parametrize(("environ", "given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_an_upstream_is_refused_where_it_stands(environ, given, message):
    """The message begins with what the user wrote."""
    with pytest.raises(UsageError) as refused:
        upstreams_of(environ) | read_upstreams(given)
    assert str(refused.value).startswith(message)


def test_variables_lead_to_the_name_behind_the_address():
    """And the user's proxy does not stand in the way."""
    found = variables("http://127.0.0.1:4141", {"NO_PROXY": "intranet"})
    assert found["OPENAI_BASE_URL"] == "http://127.0.0.1:4141/openai"
    assert found["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:4141/anthropic"
    assert found["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1:4141/gemini"
    assert found["OLLAMA_HOST"] == "http://127.0.0.1:4141/ollama"
    assert found["REENACT_GATEWAY"] == "http://127.0.0.1:4141"
    assert (found["NO_PROXY"], found["no_proxy"]) == ("intranet,127.0.0.1", "127.0.0.1")
