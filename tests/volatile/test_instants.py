"""Finding a time of the run in a text, a number, or what an id is made of."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reenact.volatile.times import Window, holds_instant, was_now, was_now_number

NOW_S = 1_790_000_000.0
UNITS = st.sampled_from([1, 10**3, 10**6, 10**9])
BASES = st.sampled_from([10, 16, 36])
STARTS = st.floats(NOW_S, NOW_S + 10**7)


@given(STARTS, st.floats(0, 3600), st.floats(0, 1), UNITS, BASES, st.text("ghxyz", max_size=9))
def test_a_moment_of_the_run_is_found(start_s, length_s, share, unit, base, other):
    """Between other letters, at whatever length of the run, also the one in which it began."""
    window = Window(start_s, start_s + length_s)
    moment_s = start_s + length_s * share
    for number in (int(moment_s * unit), round(moment_s * unit)):
        written = np.base_repr(number, base)
        assert holds_instant(f"{other} {written}-{other}", window)
        assert holds_instant(f"{other}{written.lower()}{other}", window) or base == 36


@given(STARTS, st.floats(0, 3600), st.floats(5, 10**6), UNITS, BASES, st.sampled_from([-1, 1]))
def test_another_moment_is_not(start_s, length_s, away_s, unit, base, side):
    moment_s = start_s + length_s + away_s if side > 0 else start_s - away_s
    written = np.base_repr(int(moment_s * unit), base).lower()
    assert not holds_instant(f"- {written} -", Window(start_s, start_s + length_s))


def test_in_a_run_of_days_none_is_found():
    """So many numbers are times of it that some stand anywhere."""
    assert not holds_instant(f"x{int(NOW_S)}", Window(NOW_S - 10**5, NOW_S + 10**5))


@given(STARTS, st.floats(0, 3600), st.floats(0, 1), st.sampled_from([1, 10**3]))
def test_a_number_may_be_cut_off_or_rounded(start_s, length_s, share, unit):
    """A rounded one may be later than the clock that was read."""
    window = Window(start_s, start_s + length_s)
    moment = (start_s + length_s * share) * unit
    for number in (int(moment), round(moment)):
        assert was_now_number(number, window)
        assert was_now(str(number), window)
    assert not was_now_number(int(moment) + (int(length_s) + 3) * unit, window)


def test_a_millisecond_that_a_float_rounds_down_is_one_of_the_run():
    """An id with the current time in milliseconds may be made in the moment in which the run begins."""
    began_s = 1795113190.9169998
    made_s = int(began_s * 1000) / 1000
    assert Window(began_s - 1e-7, began_s + 1).meets(made_s, 1e-3)
    assert not Window(began_s + 1e-3, began_s + 1).meets(made_s, 1e-3)
