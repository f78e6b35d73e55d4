"""What a command is about."""

import pytest

from reenact.injected.launch import subject

SUBJECTS = {
    "a script": ("python agents/triage.py -v", "triage"),
    "a module": ("/usr/bin/python3.12 -X dev -m shop.triage --all", "shop.triage"),
    "a line": ("python -c pass", "python"),
    "an interpreter": ("python3", "python3"),
    "a program": ("./bin/triage.sh a b", "triage"),
}


@pytest.mark.parametrize(("words", "expected"), SUBJECTS.values(), ids=SUBJECTS)
def test_the_subject_is_what_runs(words, expected):
    """Not what runs it, and not what it is given."""
    assert subject(words.split()) == expected
