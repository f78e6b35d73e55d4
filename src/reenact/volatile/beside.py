"""Traffic beside the run: requests that libraries make by themselves, independent of the agent's task.

Telemetry, traces, update checks and price lists are often sent by a timer, with new ids and times. They ask
no model, and their answers do not change the run. They are recorded as beside the run. Replay answers them
from the recording or with an empty answer; a missing or additional one is no divergence.

A row matches requests that only these libraries make: by host, path and, where the host serves other things
too, by the package that sends it. It never matches a request of the agent's own code. Feature flags, prompts
and datasets from the same services are used by the run, so no row names their paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from reenact.errors import FormatError
from reenact.lazy_regex import LazyRegex

NAMED: Final = "named in reenact.toml"
TABLE_NAME: Final = "beside"
"""The table in ``reenact.toml`` that names further hosts."""


class BesideRequest(NamedTuple):
    """The parts of a request that a row is matched against."""

    method: str
    host: str
    path: str
    headers: Mapping[str, str]
    """Names are in lower case."""
    body: Any = None
    """The decoded body, if it is JSON."""

    @classmethod
    def to(cls, method: str, url: str, headers: Mapping[str, str], body: object = None) -> BesideRequest:
        place = urlsplit(url)
        return cls(method, (place.hostname or "").lower(), place.path, headers, body)


class Row(NamedTuple):
    """One kind of traffic beside the run."""

    what: str
    """The description shown to the user: whose traffic, and what for."""
    path: LazyRegex[str]
    """Must match the whole path."""
    hosts: tuple[str, ...] = ("*",)
    by: tuple[str, ...] = ()
    """Top-level packages that may send it; empty for any library."""
    methods: tuple[str, ...] = ("POST",)
    test: Callable[[BesideRequest], bool] = lambda _: True
    """A further condition, if the path alone is ambiguous."""

    def holds(self, request: BesideRequest, asker: str | None) -> bool:
        """*asker* is the package that sends the request; ``None`` for a program that is not Python."""
        if request.method not in self.methods or (self.by and asker not in self.by):
            return False
        if self.path.fullmatch(request.path) is None:
            return False
        return any(fnmatchcase(request.host, host) for host in self.hosts) and self.test(request)


def _is_otlp(request: BesideRequest) -> bool:
    if request.headers.get("content-type", "").startswith("application/x-protobuf"):
        return True
    members = ("resourceSpans", "resourceMetrics", "resourceLogs")
    return isinstance(request.body, dict) and any(member in request.body for member in members)


def _is_sentry(request: BesideRequest) -> bool:
    return (
        "x-sentry-auth" in request.headers
        or request.headers.get("content-type", "") == "application/x-sentry-envelope"
    )


def _is_posthog(request: BesideRequest) -> bool:
    client = request.headers.get("user-agent", "")
    return client.startswith("posthog-") or request.host.endswith(".posthog.com")


_PRICES: Final = ("litellm", "aider", "browser_use", "crewai", "dspy")
_ANY: Final = LazyRegex(r".*")

TABLE: Final[tuple[Row, ...]] = (
    # The paths of the OTLP specification ("OTLP/HTTP Request"), below any base path of a collector.
    # CrewAI, Logfire, Langfuse, Phoenix and Traceloop use OTLP, too.
    Row("OpenTelemetry export", LazyRegex(r".*/v1/(traces|metrics|logs)/?"), test=_is_otlp),
    # develop.sentry.dev/sdk/foundations/transport: envelopes, and the store endpoint before them.
    Row("Sentry reports", LazyRegex(r".*/api/\d+/(envelope|store)/"), test=_is_sentry),
    # posthog.com/docs/api/capture and posthog-python's request.py; the run uses /flags and /decide.
    Row("PostHog events", LazyRegex(r".*/(batch|capture|e|i/v\d+/e)/?"), test=_is_posthog),
    # langfuse.com/docs/api: the paths its SDKs send to; prompts and datasets are read from other paths.
    Row(
        "Langfuse traces",
        LazyRegex(r".*/api/public/(ingestion|otel/v1/traces)"),
        by=("langfuse", "opentelemetry"),
    ),
    # langsmith's client.py: runs are created and updated, and /info says in which batches.
    Row(
        "LangSmith traces",
        LazyRegex(r".*/(runs(/batch|/multipart|/[0-9a-f-]+)?|info)"),
        by=("langsmith",),
        methods=("POST", "PATCH", "GET"),
        test=lambda request: request.method != "GET" or request.path.endswith("/info"),
    ),
    # agents/tracing/processors.py of the OpenAI Agents SDK.
    Row("OpenAI Agents traces", LazyRegex(r".*/v1/traces/ingest"), hosts=("*.openai.com",), by=("agents",)),
    # agno/api/routes.py: reports on runs, unless telemetry=False.
    Row("Agno usage statistics", LazyRegex(r"/telemetry/.*"), hosts=("*.agno.com",), by=("agno",)),
    # phi/api/routes.py: reports on runs, unless telemetry=False.
    Row(
        "Phidata usage statistics",
        LazyRegex(r"/v\d+/telemetry/.*"),
        hosts=("api.phidata.com",),
        by=("phi",),
    ),
    # litellm/__init__.py and get_model_cost_map.py: fetched as the package is imported; a copy comes with it.
    Row(
        "LiteLLM tables of prices and headers",
        LazyRegex(r"/BerriAI/litellm/.*\.json"),
        hosts=("raw.githubusercontent.com",),
        by=_PRICES,
        methods=("GET",),
    ),
    # crewai/events/listeners/tracing: traces of a run, also of users without an account.
    Row(
        "CrewAI traces",
        LazyRegex(r"/crewai_plus/api/v\d+/tracing/.*"),
        hosts=("*.crewai.com",),
        by=("crewai", "crewai_core"),
        methods=("POST", "PATCH", "PUT"),
    ),
    # aider/versioncheck.py, browser_use/utils.py, fastmcp/utilities/version_check.py, crewai_core/version.py.
    Row(
        "a check for updates",
        LazyRegex(r"/pypi/[\w.-]+/json"),
        hosts=("pypi.org",),
        by=("aider", "browser_use", "crewai", "crewai_cli", "crewai_core", "fastmcp", "agnoctl"),
        methods=("GET",),
    ),
    # huggingface_hub/utils/_telemetry.py.
    Row(
        "Hugging Face usage statistics",
        LazyRegex(r"/api/telemetry/.*"),
        hosts=("huggingface.co",),
        by=("huggingface_hub",),
        methods=("HEAD", "POST"),
    ),
    # gradio/analytics.py.
    Row("Gradio usage statistics", _ANY, hosts=("api.gradio.app",), by=("gradio",), methods=("GET", "POST")),
    # browser_use/browser/profile.py: extensions for the browser it starts.
    Row(
        "components of a browser",
        LazyRegex(r"/service/update2/.*|/edgedl/.*"),
        hosts=("clients2.google.com", "update.googleapis.com", "*.gvt1.com"),
        methods=("GET", "POST", "HEAD"),
    ),
    # developer.mixpanel.com/reference/ingestion-api.
    Row("Mixpanel events", LazyRegex(r"/(track|engage|groups|import).*"), hosts=("api*.mixpanel.com",)),
    # segment.com/docs/connections/sources/catalog/libraries/server/http-api.
    Row(
        "Segment events",
        LazyRegex(r"/v1/(batch|track|identify|page|group|alias|import|[bipt])"),
        hosts=("api.segment.io", "events.*.segmentapis.com"),
    ),
    # amplitude.com/docs/apis/analytics/http-v2.
    Row(
        "Amplitude events",
        LazyRegex(r"/(2/httpapi|batch)"),
        hosts=("api*.amplitude.com", "api.*.amplitude.com"),
    ),
    # docs.scarf.sh/gateway: a pixel or a ping reports that a package is used.
    Row("Scarf pings", _ANY, hosts=("*.scarf.sh",), methods=("GET", "POST", "HEAD")),
    # docs.statsig.com/http-api/overview: exposures and events; values of flags come from other paths.
    Row(
        "Statsig events",
        LazyRegex(r"/v1/(rgstr|log_event)"),
        hosts=("*.statsigapi.net", "statsig.anthropic.com"),
    ),
    # ddtrace's writer, to the agent on this host, and the intake of telemetry.
    Row(
        "Datadog traces",
        LazyRegex(r"/(v0\.\d+/(traces|stats)|telemetry/proxy/.*|api/v2/apmtelemetry|evp_proxy/.*)"),
        by=("ddtrace", "datadog"),
        methods=("POST", "PUT"),
    ),
    # opik's rest_api: traces and spans in batches.
    Row(
        "Opik traces",
        LazyRegex(r".*/v1/private/(traces|spans)(/batch)?"),
        by=("opik",),
        methods=("POST", "PATCH", "PUT"),
    ),
    # weave/trace_server_bindings: calls as they start and end.
    Row("Weave traces", LazyRegex(r"/(call/(start|end|upsert_batch)|calls/complete)"), by=("weave",)),
    # braintrust's logger.py.
    Row("Braintrust logs", LazyRegex(r"/logs3"), by=("braintrust",)),
    # Claude Code finds the gateway by ANTHROPIC_BASE_URL and sends this to the same address.
    Row(
        "Claude Code usage statistics",
        LazyRegex(r".*/api/(event_logging/(v\d+/)?batch|claude_code/metrics|claude_cli_feedback)"),
    ),
    # Codex does the same.
    Row("Codex usage statistics", LazyRegex(r".*/codex/analytics-events/events")),
)


def reason(request: BesideRequest, asker: str | None) -> str | None:
    """The description of the first row that matches *request*; ``None`` if it belongs to the run."""
    return next((row.what for row in TABLE if row.holds(request, asker)), None)


def empty_answer(method: str) -> dict[str, object]:
    """The answer to a request without a recorded one, in the form of a recorded HTTP answer.

    A report is accepted, so that it is not retried; a lookup finds nothing.
    """
    status, reason = (404, "Not Found") if method in ("GET", "HEAD") else (200, "OK")
    head = {
        "headers": [{"content-length": "0"}],
        "httpVersion": "HTTP/1.1",
        "reason": reason,
        "status": status,
    }
    return {"body": "", "bytes": 0, **head}


def hosts_in(project: Mapping[str, object], *, file: str) -> tuple[str, ...]:
    """The hosts in a ``reenact.toml`` whose traffic is beside the run; ``*`` matches any part of a name."""
    table = project.get(TABLE_NAME, {})
    hosts = table.get("hosts", []) if isinstance(table, Mapping) else None
    if not isinstance(hosts, list) or not all(isinstance(host, str) and host for host in hosts):
        place = f"$.{TABLE_NAME}.hosts"
        raise FormatError(
            'expected a list of names, such as ["stats.example.com"]', file=file, json_path=place
        )
    return tuple(host.lower() for host in hosts)


def is_of_hosts(url: str, hosts: Iterable[str]) -> bool:
    """Whether *url* leads to one of *hosts*; a host with a port matches that port only."""
    place = urlsplit(url)
    name = (place.hostname or "").lower()
    return any(fnmatchcase(name, host) or fnmatchcase(place.netloc.lower(), host) for host in hosts)
