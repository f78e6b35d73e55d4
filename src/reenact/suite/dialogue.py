"""Assertions on how the agent talks with its user."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal

from reenact.formats.record import Count
from reenact.formats.trace import Trace
from reenact.suite.events import calls, output_events, strings_in
from reenact.suite.params import Params
from reenact.suite.patterns import Searcher
from reenact.suite.text import contains
from reenact.suite.verdict import Verdict, at, counted, quoted, verdict

_QUESTION: Final = re.compile(r"[^.!?\n]*\?")


class AskClarifying(Params, frozen=True, kw_only=True):
    when: str | None = None
    """A pattern of an ambiguous request; another request passes. Every request counts when absent."""
    about_any_of: tuple[str, ...] = ()
    """What a question has to mention; any question does when empty."""
    forbidden_tools: tuple[str, ...] | Literal["all"] = ()
    """What must not be done before the answer is known."""
    max_questions: Count | None = None


def ask_clarifying_when_ambiguous(trace: Trace, params: AskClarifying) -> Verdict:
    """An ambiguous request is answered with a question, not with a guess."""
    if params.when is not None and not _is_asked(trace, params.when):
        message = f"the request does not match {quoted(params.when)}, so nothing need be asked"
        return verdict(True, message, observed={"ambiguous": False})
    questions = [found.strip() for found in _QUESTION.findall(trace.final_output.content)]
    relevant = [question for question in questions if _is_about(question, params.about_any_of)]
    acted = [
        event
        for event in calls(trace)
        if params.forbidden_tools == "all" or event.data.get("tool") in params.forbidden_tools
    ]
    problems = _problems(params, questions, relevant)
    problems += [f"{counted(len(acted), 'call')} made without knowing{at(acted)}"] if acted else []
    about = f" about {' or '.join(params.about_any_of)}" if params.about_any_of else ""
    message = f"expected a question{about}, found " + ("; ".join(problems) or quoted(relevant[0]))
    observed = {"ambiguous": True, "questions": questions, "calls": [event.event_id for event in acted]}
    return verdict(not problems, message, observed=observed, events=[*output_events(trace), *acted])


def _problems(params: AskClarifying, questions: list[str], relevant: list[str]) -> list[str]:
    limit = params.max_questions
    problems = [] if relevant else [f"{counted(len(questions), 'question')}, none of them about it"]
    if not questions:
        problems = ["no question in the output"]
    if limit is not None and len(questions) > limit:
        problems.append(f"{counted(len(questions), 'question')}, more than {limit}")
    return problems


def _is_asked(trace: Trace, pattern: str) -> bool:
    searcher = Searcher()
    said = (text for message in trace.input_messages for text in strings_in(message.content))
    return any(searcher.search(pattern, text) for text in said)


def _is_about(question: str, topics: Collection[str]) -> bool:
    return not topics or any(contains(question, topic) for topic in topics)
