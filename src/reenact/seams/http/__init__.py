"""HTTP clients: each call crosses the boundary with its request as meaning and its answer as bytes.

The seam lies below what a client does by itself (redirects, retries, authentication, cookies, decoding,
exceptions) and above connections: the client's own code runs in replay as it ran when recorded, and nothing
of it needs a socket.
"""

from __future__ import annotations

from typing import Final

from reenact.seams.http import aiohttp, http_client, httpx, pauses, urllib3
from reenact.seams.imports import Libraries

LIBRARIES: Final[Libraries] = {
    "httpx2": httpx.patches,
    "httpx": httpx.patches,
    "urllib3": urllib3.patches,
    "requests": urllib3.requests_patches,
    "aiohttp": aiohttp.patches,
    "http.client": http_client.patches,
    **pauses.LIBRARIES,
}
