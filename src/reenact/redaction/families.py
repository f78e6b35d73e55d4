"""Secrets that are recognised by their shape anywhere in a text: one table, each row with its source.

The sources are the issuers' documentation and the rules of two repository scanners: gitleaks
(``config/gitleaks.toml``) and detect-secrets (``plugins/``). Our patterns are wider: a scanner must avoid
false alarms, but a recorder must not store a key because its length has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_letters, digits
from typing import Final

from reenact.lazy_regex import LazyRegex
from reenact.redaction.literals import Search, literal_search, to_searched
from reenact.redaction.placeholder import PRIVATE_KEY

# A token does not start inside a word. JSON escapes, URL escapes and terminal colours also end in a letter or
# digit, but are not words.
_START: Final = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2})|(?<=\[\dm)|(?<=\[\d\dm))"
)


@dataclass(frozen=True)
class SecretRule:
    """One family of secrets; the match, or its group ``secret``, is replaced."""

    kind: str
    """Lowercase letters, digits and hyphens; it is written into the placeholder."""
    pattern: str
    anchors: tuple[str, ...] = ()
    """Every match starts with one of these; without any the rule is tried on every text, which is slow."""
    source: str = ""
    """The documentation of this shape."""
    from_anchor: str = ""
    """For anchors inside a match: a pattern for the rest of the match from the anchor on, or a wider one."""
    behind_dot: str = ""
    """For a rule without anchors: a pattern for the match after its last dot, where at least twenty base64
    characters follow."""


def _row(kind: str, anchors: str, rest: str, source: str) -> SecretRule:
    literals = tuple(anchors.split())
    return SecretRule(kind, f"{_START}(?:{'|'.join(map(re.escape, literals))}){rest}", literals, source)


_WIDE: Final = r"[A-Za-z0-9_\-]"
_PLAIN: Final = r"[A-Za-z0-9]"
_HEX: Final = r"[0-9A-Fa-f]"
_SPACE: Final = r"(?: |%20|\+)"
_SLASH: Final = "(?:/|%2[Ff])"

SHAPES: Final[tuple[SecretRule, ...]] = (
    SecretRule(
        PRIVATE_KEY,
        # A block without an end was cut off, so the rest of the text belongs to it.
        rf"-----BEGIN(?:{_SPACE}[A-Z0-9]+)*{_SPACE}PRIVATE{_SPACE}KEY(?:{_SPACE}BLOCK)?-----[\s\S]*?"
        rf"(?:-----END(?:{_SPACE}[A-Z0-9]+)*{_SPACE}PRIVATE{_SPACE}KEY(?:{_SPACE}BLOCK)?-----|\Z)",
        ("-----BEGIN ", "-----BEGIN%20", "-----BEGIN+"),
        "RFC 7468; gitleaks private-key",
    ),
    SecretRule(
        PRIVATE_KEY,
        r"PuTTY-User-Key-File-\d[\s\S]*?(?:Private-MAC: ?[0-9a-f]+|\Z)",
        ("PuTTY-User-Key-File-",),
        "detect-secrets private_key",
    ),
    _row("age-key", "AGE-SECRET-KEY-1", "[0-9A-Z]{50,}", "gitleaks age-secret-key"),
    # Models
    _row("anthropic-key", "sk-ant-", _WIDE + "{16,}", "Anthropic; gitleaks anthropic-api-key"),
    _row("openai-key", "sk-proj- sk-svcacct- sk-admin-", _WIDE + "{16,}", "OpenAI; gitleaks openai-api-key"),
    _row(
        "sk-key",
        "sk-",
        rf"(?:[A-Za-z0-9]{{1,10}}-){{0,3}}(?:[A-Za-z0-9_]{{20}}|(?=[A-Za-z_]*[0-9])[A-Za-z0-9_]{{16}}){_WIDE}*",
        "OpenAI (old), OpenRouter, DeepSeek, Langfuse, LiteLLM",
    ),
    _row("google-key", "AIza", _WIDE + "{33,40}", "Google, Gemini; gitleaks gcp-api-key"),
    _row("google-token", "ya29.", r"[A-Za-z0-9_.\-]{20,}", "Google OAuth 2.0"),
    _row("google-refresh-token", "1//0 1%2F%2F0 1%2f%2f0", _WIDE + "{20,}", "Google OAuth 2.0"),
    _row("google-client-secret", "GOCSPX-", _WIDE + "{16,}", "Google OAuth 2.0"),
    _row(
        "huggingface-token",
        "hf_ api_org_",
        _PLAIN + "{30,}",
        "Hugging Face; gitleaks huggingface-access-token",
    ),
    _row("groq-key", "gsk_", _PLAIN + "{20,}", "Groq"),
    _row("xai-key", "xai-", _PLAIN + "{32,}", "xAI"),
    _row("perplexity-key", "pplx-", _PLAIN + "{32,}", "Perplexity; gitleaks perplexity-api-key"),
    _row("cerebras-key", "csk-", _PLAIN + "{32,}", "Cerebras"),
    _row("replicate-token", "r8_", _PLAIN + "{32,}", "Replicate"),
    _row("nvidia-key", "nvapi-", _WIDE + "{32,}", "NVIDIA"),
    _row("together-key", "tgp_v1_", _WIDE + "{30,}", "Together AI"),
    _row("fireworks-key", "fw_", _PLAIN + "{20,}", "Fireworks AI"),
    _row("elevenlabs-key", "sk_", "[0-9a-f]{40,}", "ElevenLabs"),
    _row("jina-key", "jina_", _WIDE + "{40,}", "Jina AI"),
    _row("tavily-key", "tvly-", _WIDE + "{16,}", "Tavily"),
    _row("pinecone-key", "pcsk_", "[A-Za-z0-9_]{30,}", "Pinecone"),
    _row("e2b-key", "e2b_", "[0-9a-f]{32,}", "E2B"),
    _row("firecrawl-key", "fc-", "[0-9a-f]{32,}", "Firecrawl"),
    _row("langfuse-key", "sk-lf-", "[0-9a-f-]{36}", "Langfuse"),
    _row("langsmith-key", "lsv2_", "[a-z]{2}_[A-Za-z0-9_]{20,}", "LangSmith; gitleaks langsmith"),
    _row(
        "bedrock-key",
        "ABSK bedrock-api-key-",
        "[A-Za-z0-9+/]{30,}={0,2}",
        "gitleaks aws-amazon-bedrock-api-key",
    ),
    # Clouds
    _row(
        "aws-key-id",
        "AKIA ASIA ABIA ACCA",
        "[0-9A-Z]{16}(?![A-Za-z0-9])",
        "AWS IAM identifiers; detect-secrets aws",
    ),
    _row("aws-key-id", "A3T", "[0-9A-Z]{17}(?![A-Za-z0-9])", "detect-secrets aws"),
    SecretRule(
        "azure-client-secret",
        r"(?<![A-Za-z0-9_~.\-])[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.\-]{31,34}(?![A-Za-z0-9_~\-])",
        tuple(f"{digit}Q~" for digit in digits),
        "gitleaks azure-ad-client-secret",
        from_anchor=r"\dQ~[A-Za-z0-9_~.\-]{31}",
    ),
    _row("alibaba-key-id", "LTAI", _PLAIN + "{12,}", "gitleaks alibaba-access-key-id"),
    _row("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", _HEX + "{32,}", "gitleaks digitalocean-pat"),
    _row("databricks-token", "dapi", r"[0-9a-f]{32}(?:-\d+)?", "gitleaks databricks-api-token"),
    _row("heroku-key", "HRKU-AA", _WIDE + "{40,}", "gitleaks heroku-api-key-v2"),
    _row("fly-token", "fo1_ fm1a_ fm1r_ fm2_", r"[A-Za-z0-9_+/\-]{40,}={0,3}", "gitleaks flyio-access-token"),
    _row("supabase-key", "sbp_ sb_secret_", "[A-Za-z0-9_]{20,}", "Supabase"),
    _row("planetscale-token", "pscale_", r"[a-z]+_[A-Za-z0-9_=.\-]{30,}", "gitleaks planetscale"),
    _row("pulumi-token", "pul-", _HEX + "{40}", "gitleaks pulumi-api-token"),
    _row(
        "tailscale-key",
        "tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook-",
        "[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}",
        "Tailscale",
    ),
    _row("vault-token", "hvs. hvb. hvr.", _WIDE + "{20,}", "gitleaks vault-service-token"),
    SecretRule(
        "terraform-token",
        r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=\-]{40,}",
        (".atlasv1.",),
        "gitleaks hashicorp-tf-api-token",
        from_anchor=r"\.atlasv1\.[A-Za-z0-9_=\-]{40}",
    ),
    _row(
        "doppler-token", "dp.pt. dp.st. dp.ct. dp.sa.", r"[A-Za-z0-9._\-]{30,}", "gitleaks doppler-api-token"
    ),
    _row("openshift-token", "sha256~", _WIDE + "{40,}", "gitleaks openshift-user-token"),
    _row("cloudflare-key", "v1.0-", "[0-9a-f]{24}-[0-9a-f]{146}", "gitleaks cloudflare-origin-ca-key"),
    _row("yandex-token", "AQVN", _WIDE + "{35,38}(?![A-Za-z0-9_-])", "gitleaks yandex-api-key"),
    _row("yandex-token", "t1.", rf"{_WIDE}+=*\.{_WIDE}{{86}}=*", "gitleaks yandex-access-token"),
    _row(
        "clickhouse-key", "4b1d", _PLAIN + "{38}(?![A-Za-z0-9])", "gitleaks clickhouse-cloud-api-secret-key"
    ),
    _row("scalingo-token", "tk-us-", _WIDE + "{48}", "gitleaks scalingo-api-token"),
    _row("infracost-key", "ico-", _PLAIN + "{32}(?![A-Za-z0-9])", "gitleaks infracost-api-token"),
    _row("dnkey", "dnkey-", r"[A-Za-z0-9=_\-]{40,}", "gitleaks defined-networking-api-token"),
    _row("render-key", "rnd_", _PLAIN + "{24,}", "Render"),
    _row("neon-key", "napi_", _PLAIN + "{40,}", "Neon"),
    SecretRule(
        "softlayer-key",
        r"api\.softlayer\.com/soap/v3(?:\.1)?/(?P<secret>[a-z0-9]{64})",
        ("api.softlayer.com",),
        "detect-secrets softlayer",
        from_anchor=rf"api\.softlayer\.com{_SLASH}soap",
    ),
    SecretRule(
        "maxmind-key",
        rf"{_START}[A-Za-z0-9]{{6}}_[A-Za-z0-9]{{29}}_mmk(?![A-Za-z0-9])",
        ("_mmk",),
        "gitleaks maxmind-license-key",
        from_anchor=r"_mmk(?<=[A-Za-z0-9]_[A-Za-z0-9]{29}_mmk)",
    ),
    # Code and packages
    _row("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _PLAIN + "{20,}", "GitHub; gitleaks github-pat"),
    _row("github-token", "github_pat_", "[A-Za-z0-9_]{20,}", "GitHub; gitleaks github-fine-grained-pat"),
    _row(
        "gitlab-token",
        "glpat- gloas- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glsoat- glffct- glwt-"
        " GR1348941",
        r"[A-Za-z0-9_.\-]{16,}",
        "GitLab token prefixes; detect-secrets gitlab_token",
    ),
    _row("atlassian-token", "ATATT3 ATCTT3 ATBB", r"[A-Za-z0-9_=\-]{20,}", "gitleaks atlassian-api-token"),
    _row("npm-token", "npm_", _PLAIN + "{30,}", "npm; gitleaks npm-access-token"),
    _row("pypi-token", "pypi-AgE", _WIDE + "{16,}", "PyPI; detect-secrets pypi_token"),
    _row("rubygems-token", "rubygems_", _HEX + "{40,}", "gitleaks rubygems-api-token"),
    _row("docker-token", "dckr_pat_ dckr_oat_", _WIDE + "{20,}", "Docker Hub"),
    _row(
        "artifactory-key",
        "AKCp",
        _PLAIN + "{60,}",
        "gitleaks artifactory-api-key; detect-secrets artifactory",
    ),
    _row(
        "artifactory-token", "cmVmd", _PLAIN + "{59}(?![A-Za-z0-9])", "gitleaks artifactory-reference-token"
    ),
    _row("clojars-token", "CLOJARS_", _PLAIN + "{60}", "gitleaks clojars-api-token"),
    _row("sourcegraph-token", "sgp_", "(?:[0-9A-Fa-f]{16}_|local_)?[0-9A-Fa-f]{40}", "gitleaks sourcegraph"),
    _row("octopus-key", "API-", "[A-Z0-9]{26}(?![A-Za-z0-9])", "gitleaks octopus-deploy-api-key"),
    _row(
        "harness-token",
        "pat. sat.",
        rf"{_WIDE}{{22}}\.{_PLAIN}{{24}}\.{_PLAIN}{{20}}",
        "gitleaks harness-api-key",
    ),
    _row("readme-key", "rdme_", "[a-z0-9]{60,}", "gitleaks readme-api-token"),
    _row("intra42-secret", "s-s4t2ud- s-s4t2af-", _HEX + "{64}", "gitleaks intra42-client-secret"),
    _row("sonar-token", "squ_ sqp_ sqa_", _PLAIN + "{40}", "gitleaks sonar-api-token"),
    _row("postman-key", "PMAK-", r"[0-9A-Fa-f\-]{40,}", "gitleaks postman-api-token"),
    _row("prefect-token", "pnu_", _PLAIN + "{30,}", "gitleaks prefect-api-token"),
    _row("figma-token", "figd_", _WIDE + "{30,}", "Figma"),
    _row("linear-key", "lin_api_ lin_oauth_", _PLAIN + "{30,}", "gitleaks linear-api-key"),
    _row("notion-token", "ntn_", _PLAIN + "{40,}", "gitleaks notion-api-token"),
    SecretRule(
        "airtable-token",
        rf"{_START}pat[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}(?![A-Za-z0-9])",
        source="gitleaks airtable-personnal-access-token",
        behind_dot="[0-9a-f]{64}",
    ),
    _row(
        "1password-token", "ops_eyJ", r"[A-Za-z0-9+/]{100,}={0,3}", "gitleaks 1password-service-account-token"
    ),
    _row(
        "1password-key",
        "A3-",
        r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Za-z0-9])",
        "gitleaks 1password-secret-key",
    ),
    _row("adobe-secret", "p8e-", _PLAIN + "{32}(?![A-Za-z0-9])", "gitleaks adobe-client-secret"),
    _row(
        "authress-key",
        "sc_ ext_ scauth_ authress_",
        r"[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_\-][A-Za-z0-9\-]{10,32}\.[A-Za-z0-9+/_=\-]{30,120}",
        "gitleaks authress-service-client-access-key",
    ),
    _row("frameio-token", "fio-u-", r"[A-Za-z0-9_=\-]{64}", "gitleaks frameio-api-token"),
    _row("typeform-token", "tfp_", r"[A-Za-z0-9_.=\-]{40,}", "gitleaks typeform-api-token"),
    _row("settlemint-token", "sm_aat_ sm_pat_ sm_sat_", _PLAIN + "{16}", "gitleaks settlemint"),
    _row("hubspot-token", "pat-na1- pat-na2- pat-eu1-", r"[0-9a-f\-]{36}", "HubSpot private apps"),
    _row(
        "mapbox-token",
        "sk.eyJ pk.eyJ tk.eyJ",
        rf"{_WIDE}{{20,}}\.{_WIDE}{{20,}}",
        "gitleaks mapbox-api-token",
    ),
    # Monitoring
    _row("grafana-token", "glsa_ glc_", r"[A-Za-z0-9_+/]{30,}={0,3}", "gitleaks grafana"),
    _row("grafana-token", "eyJrIjoi", "[A-Za-z0-9]{60,}={0,3}", "gitleaks grafana-api-key"),
    _row("posthog-key", "phx_", _PLAIN + "{40,}", "PostHog"),
    _row("sentry-token", "sntrys_ sntryu_", r"[A-Za-z0-9_+/=\-]{40,}", "gitleaks sentry"),
    _row("newrelic-key", "NRAK- NRII- NRJS-", r"[A-Za-z0-9\-]{19,}", "gitleaks new-relic"),
    _row("dynatrace-token", "dt0c01.", r"[A-Z0-9]{20,}\.[A-Z0-9]{40,}", "gitleaks dynatrace-api-token"),
    # Messages
    _row(
        "slack-token",
        "xox",
        r"(?:d-[A-Za-z0-9%+/=_\-]{10,}|[a-z](?:\.xox[a-z])?-[A-Za-z0-9\-]{10,})",
        "Slack token types; gitleaks slack-*; detect-secrets slack",
    ),
    _row("slack-token", "xapp- xwfp-", r"[A-Za-z0-9\-]{10,}", "Slack token types; gitleaks slack-app-token"),
    SecretRule(
        "slack-webhook",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/_\-]{10,})",
        ("hooks.slack",),
        "gitleaks slack-webhook-url; detect-secrets slack",
        from_anchor=rf"hooks\.slack(?:-gov)?\.com{_SLASH}(?:services|workflows|triggers)",
    ),
    SecretRule(
        "discord-webhook",
        r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/(?P<secret>[A-Za-z0-9_\-]{20,})",
        ("discord.com", "discordapp.com"),
        "Discord",
        from_anchor=rf"discord(?:app)?\.com{_SLASH}api{_SLASH}",
    ),
    SecretRule(
        "teams-webhook",
        r"webhook\.office\.com/webhookb2/(?P<secret>[A-Za-z0-9@/\-]{30,})",
        ("webhook.office.com",),
        "gitleaks microsoft-teams-webhook",
        from_anchor=rf"webhook\.office\.com{_SLASH}webhookb2",
    ),
    SecretRule(
        "discord-token",
        rf"{_START}[MNO][A-Za-z0-9_\-]{{22,27}}\.[A-Za-z0-9_\-]{{6}}\.[A-Za-z0-9_\-]{{27,45}}",
        source="detect-secrets discord",
        behind_dot=r"(?<=\.[A-Za-z0-9_\-]{6}\.)[A-Za-z0-9_\-]{27}",
    ),
    SecretRule(
        "telegram-token",
        r"(?<!\d)\d{5,16}:AA[A-Za-z0-9_\-]{33}(?![A-Za-z0-9_\-])",
        (":AA", "%3AAA", "%3aAA"),
        "detect-secrets telegram_token; gitleaks telegram-bot-api-token",
        from_anchor=r"(?::|%3[Aa])AA[A-Za-z0-9_\-]{33}",
    ),
    _row(
        "twilio-key",
        " ".join(f"SK{digit}" for digit in "0123456789abcdefABCDEF"),
        "[0-9A-Fa-f]{31}(?![A-Za-z0-9])",
        "gitleaks twilio-api-key; detect-secrets twilio",
    ),
    SecretRule(
        "mailchimp-key",
        rf"{_START}[0-9a-f]{{32}}-us\d{{1,2}}(?![A-Za-z0-9])",
        ("-us",),
        "detect-secrets mailchimp",
        from_anchor=r"-us(?<=[0-9a-f]{32}-us)\d",
    ),
    _row("sendgrid-key", "SG.", rf"{_WIDE}{{16,}}\.{_WIDE}{{16,}}", "gitleaks sendgrid-api-token"),
    _row("mailgun-key", "key-", "[0-9a-f]{32}(?![A-Za-z0-9])", "gitleaks mailgun-private-api-token"),
    _row("sendinblue-key", "xkeysib-", r"[A-Za-z0-9\-]{40,}", "gitleaks sendinblue-api-token"),
    _row("resend-key", "re_", "[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}", "Resend"),
    # Money and shops
    _row(
        "stripe-key",
        "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_",
        _PLAIN + "{10,}",
        "Stripe; gitleaks stripe-access-token; detect-secrets stripe",
    ),
    _row("shopify-token", "shpat_ shpca_ shppa_ shpss_", _HEX + "{32}", "gitleaks shopify-*"),
    _row("square-token", "sq0atp- sq0csp-", _WIDE + "{22,}", "gitleaks square; detect-secrets square_oauth"),
    _row("facebook-token", "EAAA EAAC EAAM", _WIDE + "{60,}", "gitleaks facebook-page-access-token, square"),
    _row("easypost-key", "EZAK EZTK", _PLAIN + "{54}", "gitleaks easypost-api-token"),
    _row("flutterwave-key", "FLWSECK", r"[A-Za-z0-9_\-]{12,}", "gitleaks flutterwave-secret-key"),
    _row(
        "plaid-token",
        "access-sandbox- access-development- access-production-",
        r"[0-9a-f\-]{36}",
        "gitleaks plaid",
    ),
    _row(
        "gocardless-token",
        "live_ sandbox_",
        # Identifiers can begin like this; a random token has characters of all three kinds.
        rf"(?={_WIDE}{{0,39}}[A-Z])(?={_WIDE}{{0,39}}[a-z])(?={_WIDE}{{0,39}}[0-9])"
        rf"{_WIDE}{{40}}(?!{_WIDE})",
        "GoCardless; gitleaks gocardless-api-token",
    ),
    _row("shippo-token", "shippo_live_ shippo_test_", _HEX + "{40}", "gitleaks shippo-api-token"),
    _row("duffel-token", "duffel_test_ duffel_live_", r"[A-Za-z0-9_=\-]{43}", "gitleaks duffel-api-token"),
    # Bounded and possessive: a text that repeats the anchor would take quadratic time.
    _row("jwt", "eyJ", rf"{_WIDE}{{8,8192}}+\.eyJ{_WIDE}{{8,}}\.{_WIDE}*", "RFC 7519; gitleaks jwt"),
)

MIN_RANDOM: Final = 32
RANDOM_CHARACTERS: Final = ascii_letters + digits + "+_-"

_RANDOM: Final = r"[A-Za-z0-9+_-]"

STRICT_SHAPES: Final[tuple[SecretRule, ...]] = (
    SecretRule(
        "email", r"(?<![\w.%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"
    ),
    # Lowercase, uppercase and digits together: digests, UUIDs and long words lack one of them. Text with
    # slashes is a path; longer runs are data: images, signatures of reasoning, encrypted state.
    SecretRule(
        "random",
        rf"(?<![A-Za-z0-9+/_=-])(?={_RANDOM}*[A-Z])(?={_RANDOM}*[a-z])(?=(?:{_RANDOM}*?[0-9]){{3}})"
        rf"{_RANDOM}{{{MIN_RANDOM},128}}+={{0,2}}(?![A-Za-z0-9+/_-])",
    ),
)


class Shapes:
    """Finds secrets by rules, and the kind of a secret."""

    def __init__(self, rules: Sequence[SecretRule]) -> None:
        self._rules = [(rule, LazyRegex(rule.pattern)) for rule in rules]
        self._owners = [number for number, rule in enumerate(rules) for _ in rule.anchors]
        """The number of the rule of each anchor."""
        self._longest_anchor = max((len(anchor) for rule in rules for anchor in rule.anchors), default=0)
        self._not_from_start = {
            number for number, rule in enumerate(rules) if rule.from_anchor or not rule.anchors
        }
        self._without_anchor = {number for number, rule in enumerate(rules) if not rule.anchors}

    @cached_property
    def _search(self) -> Search:
        anchors = [anchor for rule, _ in self._rules for anchor in rule.anchors]
        if not all(map(str.isascii, anchors)):
            return lambda _: [(number, 0, 0) for number in range(len(anchors))]
        return literal_search([anchor.encode() for anchor in anchors], overlapping=True)

    def kind_of(self, value: str) -> str | None:
        """The kind of *value* if all of it is one secret."""
        plain = value.strip()
        head = plain[: self._longest_anchor].encode("utf-8", "surrogatepass")
        begun = {self._owners[number] for number, start, _ in self._search(head) if start == 0}
        for number in sorted(begun | self._not_from_start):
            rule, pattern = self._rules[number]
            if pattern.fullmatch(plain):
                return rule.kind
        return None

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """The spans of all secrets, rule by rule."""
        found = {self._owners[number] for number, _, _ in self._search(to_searched(text))}
        for number in sorted(found | self._without_anchor):
            rule, pattern = self._rules[number]
            for match in _matches(text, pattern, rule):
                yield match.span("secret" if "secret" in match.re.groupindex else 0)


def _matches(text: str, pattern: LazyRegex[str], rule: SecretRule) -> Iterator[re.Match[str]]:
    if rule.from_anchor or not rule.anchors:
        # A part of the match is faster to search for than the whole.
        inside = rule.from_anchor or (rule.behind_dot and rf"\.(?:{rule.behind_dot})")
        if not inside or re.search(inside, text):
            yield from pattern.finditer(text)
        return
    for anchor in rule.anchors:
        # A pattern that starts with a look-behind is slow to search, but fast to match at a known position.
        start = text.find(anchor)
        while start >= 0:
            match = pattern.match(text, start)
            if match:
                yield match
            start = text.find(anchor, match.end() if match else start + 1)
