"""Which requests the table knows as traffic beside the run."""

import pytest

from reenact.volatile.beside import TABLE, BesideRequest, hosts_in, is_of_hosts, reason

PRICES = "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
PROTOBUF = {"content-type": "application/x-protobuf"}
POSTHOG = {"user-agent": "posthog-python/6.0"}

BESIDE = [
    ("POST", "http://127.0.0.1:4318/v1/traces", PROTOBUF, "opentelemetry"),
    ("POST", "https://telemetry.crewai.com:4319/v1/traces", PROTOBUF, "opentelemetry"),
    ("POST", "https://o1.ingest.sentry.io/api/42/envelope/", {"x-sentry-auth": "Sentry"}, "sentry_sdk"),
    ("POST", "https://eu.i.posthog.com/batch/", {}, "posthog"),
    ("POST", "http://analytics.example/batch/", POSTHOG, "posthog"),
    ("POST", "https://cloud.langfuse.com/api/public/ingestion", {}, "langfuse"),
    ("POST", "https://api.smith.langchain.com/runs/multipart", {}, "langsmith"),
    ("GET", "https://api.smith.langchain.com/info", {}, "langsmith"),
    ("POST", "https://os-api.agno.com/telemetry/runs", {}, "agno"),
    ("POST", "https://api.phidata.com/v1/telemetry/agent/run/create", {}, "phi"),
    ("GET", PRICES, {}, "litellm"),
    ("GET", "https://pypi.org/pypi/fastmcp/json", {}, "fastmcp"),
    ("POST", "https://api.openai.com/v1/traces/ingest", {}, "agents"),
]


@pytest.mark.parametrize(("method", "url", "headers", "asker"), BESIDE)
def test_traffic_beside_the_run(method, url, headers, asker):
    """By address, path, and whoever asks."""
    assert reason(BesideRequest.to(method, url, headers), asker)


USED = [
    ("POST", "https://eu.i.posthog.com/flags/", {}, "posthog"),
    ("GET", "https://cloud.langfuse.com/api/public/v2/prompts/one", {}, "langfuse"),
    ("GET", "https://api.smith.langchain.com/commits/a/b/latest", {}, "langsmith"),
    ("POST", "https://api.smith.langchain.com/runs/query", {}, "langsmith"),
    ("GET", PRICES, {}, "somebody"),
    ("GET", "https://pypi.org/pypi/requests/json", {}, "somebody"),
    ("POST", "https://api.example.com/v1/traces", {"content-type": "application/json"}, "client"),
    ("POST", "https://api.example.com/v1/batch", {}, "client"),
    ("GET", "https://raw.githubusercontent.com/somebody/litellm/main/a.json", {}, "litellm"),
]


@pytest.mark.parametrize(("method", "url", "headers", "asker"), USED)
def test_what_the_run_may_use_is_not_beside_it(method, url, headers, asker):
    """Flags, prompts, and what others ask for at the same address."""
    assert reason(BesideRequest.to(method, url, headers), asker) is None


def test_rows_that_go_by_the_asker_do_not_hold_for_other_programs():
    """Of which only requests are seen."""
    assert reason(BesideRequest.to("GET", PRICES, {}), None) is None


def test_every_row_says_what_it_is():
    """Each once."""
    assert len({row.what for row in TABLE}) == len(TABLE)


@pytest.mark.parametrize(
    ("url", "is_named"),
    [
        ("https://stats.example.com/a", True),
        ("http://STATS.example.com:81/a", True),
        ("https://a.stats.example.com/", False),
        ("https://one.corp.example/", True),
        ("http://127.0.0.1:9/", True),
        ("http://127.0.0.1:99/", False),
    ],
)
def test_hosts_of_a_project(url, is_named):
    """With a port only where one is given."""
    project = {"beside": {"hosts": ["Stats.example.com", "*.corp.example", "127.0.0.1:9"]}}
    assert is_of_hosts(url, hosts_in(project, file="reenact.toml")) is is_named
