"""Random programs that hang on who is first are never called the same when their result is another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hard import SEED, rounds, say
from tests.replayer.race_programs import record_and_replay

MOST_DIVERGED = 0.15
"""On a loaded machine, where an event loop gets no processor for long, several things happen in one round."""


def test_no_other_result_is_called_the_same(tmp_path: Path) -> None:
    """Tools and own work take another time in replay; deadlines pass where they passed, or it is said."""
    programs, diverged = rounds(60, 1_500), 0
    for program in range(programs):
        outcome = record_and_replay(SEED * 1_000_000 + program, tmp_path / str(program))
        assert outcome is not None
        assert not outcome.is_false, f"program {program}: {outcome.recorded} became {outcome.replayed}"
        diverged += bool(outcome.divergence)
    say(f"{programs} programs with races and deadlines, replayed at another pace: {diverged} were refused")
    assert diverged <= programs * MOST_DIVERGED


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_another_question_is_always_found(tmp_path: Path) -> None:
    """One call of a program asks something else in replay: whatever else happens, it is refused."""
    programs, planted = rounds(15, 500), 0
    for program in range(programs):
        outcome = record_and_replay(SEED * 2_000_000 + program, tmp_path / str(program), is_planted=True)
        if outcome is not None:
            planted += 1
            assert outcome.divergence, f"program {program}: another question was answered"
    assert planted
    say(f"{planted} programs with races in which one call asks something else: all were refused")
