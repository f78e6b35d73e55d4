"""The viewer as an application: its own files, and the questions of the page."""

from __future__ import annotations

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from reenact.errors import ReenactError, UsageError
from reenact.viewer.api import Api
from reenact.viewer.guard import Guard
from reenact.viewer.shelf import Shelf
from reenact.viewer.static import INDEX, media_type, static_files


def viewer_app(shelf: Shelf) -> ASGIApp:
    """The application that shows the runs of *shelf*."""
    api = Api(shelf)

    async def ask(request: Request) -> Response:
        question = request.path_params["question"]
        try:
            return _json(await run_in_threadpool(api.ask, question, request.query_params))
        except (ReenactError, OSError) as error:
            return _json({"error": str(error)}, 404 if isinstance(error, UsageError) else 422)

    async def file(request: Request) -> Response:
        name = request.path_params.get("name", INDEX)
        content = static_files().get(name)
        if content is None:
            return Response("There is nothing here.\n", 404, media_type="text/plain")
        return Response(content, media_type=media_type(name))

    routes = [Route("/", file), Route("/{name}", file), Route("/api/{question}", ask)]
    return Guard(Starlette(routes=routes))


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
