"""Rules that always hold: parts of a model request that by its provider's contract do not reach the model.

Each names bookkeeping, never words of the conversation: two requests that differ there alone have the same
answer. Dates, working directories and identifiers inside prompts are not here, because a question may be
about them; ``reenact doctor`` finds the ones that are noise.
"""

from __future__ import annotations

from typing import Final

from reenact.formats.volatile import VolatileRule

DEFAULTS: Final = (
    # Chooses the machine that may still hold the prompt's beginning; agents put the session's id here.
    VolatileRule(call="llm", path="$.body.prompt_cache_key"),
    # Who asks, for the provider's abuse detection; agents put installation, account and session ids here.
    VolatileRule(call="llm", path="$.body.user"),
    VolatileRule(call="llm", path="$.body.safety_identifier"),
    VolatileRule(call="llm", path="$.body.metadata.user_id"),
    # What a client says of itself: its installation, its version.
    VolatileRule(call="llm", path="$.body.client_metadata"),
    # What a client that keeps the conversation itself calls its parts, as Codex does. Ids that the provider
    # gave, and by which it may find a part again, are no UUIDs.
    VolatileRule(
        call="llm",
        path="$.body.input[*].id",
        mask=r"^[a-z]+_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    ),
    # How long an earlier command took by the client's clock, and the number it drew for its output, as
    # Codex writes them above the output, which itself is compared.
    VolatileRule(
        call="llm",
        path="$.body.input[*].output",
        mask=r"(?m)^(?:Wall time: [0-9.]+ seconds|Chunk ID: [0-9a-f]+)$",
    ),
    VolatileRule(call="llm", path="$.body.input[*].output", mask=r'"duration_seconds":[0-9.]+'),
)
