"""Chooses the turn that answers a request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from reenact.errors import UsageError
from reenact.testing.request import Request
from reenact.testing.turns import Reply, Turn

Answering: TypeAlias = Callable[[Request], Turn]


class Script(ABC):
    """Decides which turn answers a request.

    ``Script.of([...])``        each turn once, in order; a turn whose ``when`` does not hold is skipped
    ``Script.of(turn)``         the same turn for every request
    ``Script.of(function)``     whatever ``function(request)`` returns
    ``Script.by_text({...})``   one script for each conversation, chosen by the user's words

    :class:`ScriptedProvider` takes what ``of`` takes. A script has state: use one for each provider.
    """

    @abstractmethod
    def take(self, request: Request) -> Turn | None:
        """Take the turn for *request*; ``None`` if there is none."""

    @property
    @abstractmethod
    def unused(self) -> tuple[Turn, ...]:
        """The turns that have not been used yet."""

    @staticmethod
    def of(source: ScriptSource) -> Script:
        """Make a script from *source*."""
        if isinstance(source, Script):
            return source
        if isinstance(source, Turn):
            return _Always(source)
        return _Function(source) if callable(source) else _InOrder(source)

    @staticmethod
    def by_text(answers: Mapping[str, ScriptSource], default: ScriptSource | None = None) -> Script:
        """One script per key, chosen by the longest key that the user's last words contain.

        Conversations with different keys may run in parallel, because each has its own turns. *default*
        answers requests that match no key; its turns need not be used.
        """
        return _ByText(answers, default)


ScriptSource: TypeAlias = Script | Turn | Iterable[Turn] | Answering


class _InOrder(Script):
    def __init__(self, turns: Iterable[Turn]) -> None:
        self._left = list(turns)
        for position, turn in enumerate(self._left):
            if not isinstance(turn, Turn):
                raise UsageError(
                    f"script[{position}]: {turn!r} is not a turn; use Reply, Fail, Disconnect, …"
                )

    def take(self, request: Request) -> Turn | None:
        for position, turn in enumerate(self._left):
            if turn.answers(request):
                return self._left.pop(position)
        return None

    @property
    def unused(self) -> tuple[Turn, ...]:
        return tuple(self._left)


class _Always(Script):
    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._used = False

    def take(self, request: Request) -> Turn | None:
        if not self._turn.answers(request):
            return None
        self._used = True
        return self._turn

    @property
    def unused(self) -> tuple[Turn, ...]:
        return () if self._used else (self._turn,)


class _Function(Script):
    def __init__(self, function: Answering) -> None:
        self._function = function

    def take(self, request: Request) -> Turn | None:
        return self._function(request)

    @property
    def unused(self) -> tuple[Turn, ...]:
        return ()


class _ByText(Script):
    def __init__(self, answers: Mapping[str, ScriptSource], default: ScriptSource | None) -> None:
        # Longest first, so that "task 10" is not answered by the script for "task 1".
        keys: Sequence[str] = sorted(answers, key=len, reverse=True)
        self._scripts = {key: Script.of(answers[key]) for key in keys}
        self._default = Script.of([] if default is None else default)

    def take(self, request: Request) -> Turn | None:
        said = request.user_text
        script = next((self._scripts[key] for key in self._scripts if key in said), self._default)
        return script.take(request)

    @property
    def unused(self) -> tuple[Turn, ...]:
        return tuple(turn for script in self._scripts.values() for turn in script.unused)


def echo(
    answer: Callable[[Request], str] = lambda request: request.user_text, like: Reply | None = None
) -> Answering:
    """A script that answers each request with ``answer(request)``, by default the user's last words.

    *like* gives everything but the text: delays, chunks, usage. The answer depends only on the request, so
    each of many parallel calls can be checked.
    """
    model = like or Reply()
    return lambda request: replace(model, text=answer(request))
