"""The profile that is chosen, the environment, the count."""

from __future__ import annotations

from threading import Thread

import pytest

from reenact import canonical
from reenact.redaction import Redactor, default_profile, environment_secrets

from . import redaction_cases as cases


@pytest.fixture
def redactor() -> Redactor:
    return Redactor("default", secrets=["my own value"], salt=b"salt")


@pytest.mark.parametrize(
    ("environ", "profile"),
    [
        ({}, "default"),
        ({"CI": ""}, "default"),
        ({"CI": "false"}, "default"),
        ({"CI": "0"}, "default"),
        ({"CI": "true"}, "strict"),
        ({"CI": "1"}, "strict"),
        ({"CI": "woodpecker"}, "strict"),
    ],
)
def test_the_profile_is_strict_in_continuous_integration(environ: dict[str, str], profile: str) -> None:
    """Captures made there are usually shared."""
    assert default_profile(environ) == profile


def test_the_environment_names_secrets_to_register() -> None:
    """Variables with secret names, unless their value is a word, a path or a reference."""
    environ = {
        "OPENAI_API_KEY": cases.OPENAI,
        "DB_PASSWORD": "correct horse",
        "MY_TOKEN": "short",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/bob/key.json",
        "OTHER_TOKEN": "${MY_TOKEN}",
        "MAX_TOKENS": "1000000000",
        "PATH": "/usr/bin:/usr/local/bin",
    }
    assert environment_secrets(environ) == [cases.OPENAI, "correct horse"]


def test_the_count_tells_how_many_values_were_replaced(redactor: Redactor) -> None:
    """One for each place, none for what was redacted before."""
    redacted = redactor.redact_json(
        canonical.encode({"password": "plain words", "text": [cases.GITHUB, "x"]})
    )
    assert redactor.count == 2
    redactor.redact_json(redacted)
    redactor.redact_header_object({"Authorization": "Bearer plain", "Accept": "*/*"})
    assert redactor.count == 3


def test_threads_count_together(redactor: Redactor) -> None:
    """No replacement is lost."""
    threads = [
        Thread(target=lambda: [redactor.redact_text("password=letmein") for _ in range(50)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert redactor.count == 200
