"""The folders of a run in whatever spelling texts name them."""

import json
import os
from urllib.parse import quote

import pytest

from reenact.replayer.answers import Substitution
from reenact.volatile.places import Places, mark_places, own_places, spellings

SALT = b"salt"
THERE = {"workspace": "/home/ann/ws", "workspace/given": "/srv/link", "workspace/home": "~/ws"}
HERE = {"workspace": "/tmp/x y/again"}


def places(there=THERE, here=HERE):
    return Places(mark_places(there, SALT), here, SALT)


def is_same(recorded, live, **both):
    neutral = places(**both).neutralize(recorded, live)
    return recorded == live or (neutral is not None and neutral.recorded == neutral.live)


NAMED = {
    "alone": ("/home/ann/ws", "/tmp/x y/again"),
    "a file in it": ("see /home/ann/ws/a.py:3", "see /tmp/x y/again/a.py:3"),
    "a slash behind it": ("cd /home/ann/ws/", "cd /tmp/x y/again/"),
    "at the end of a sentence": ("in /home/ann/ws.", "in /tmp/x y/again."),
    "in quotes": ('"/home/ann/ws"', '"/tmp/x y/again"'),
    "an address": ("file:///home/ann/ws/a", "file:///tmp/x%20y/again/a"),
    "escaped in JSON": (r"\/home\/ann\/ws\/a", r"\/tmp\/x y\/again\/a"),
    "JSON in JSON": (json.dumps("a\n/home/ann/ws\n"), json.dumps("a\n/tmp/x y/again\n")),
    "percent-encoded": ("?p=%2Fhome%2Fann%2Fws%2Fa", "?p=%2Ftmp%2Fx%20y%2Fagain%2Fa"),
    "an encoded address": (quote("file:///home/ann/ws", safe=""), quote("file:///tmp/x y/again", safe="")),
    "by the name of a link": ("/srv/link/a", "/tmp/x y/again/a"),
    "below the home": ("~/ws/a", "/tmp/x y/again/a"),
    "twice": ("/home/ann/ws:/home/ann/ws/bin", "/tmp/x y/again:/tmp/x y/again/bin"),
}


@pytest.mark.parametrize(("recorded", "live"), NAMED.values(), ids=NAMED)
def test_a_folder_is_recognised(recorded, live):
    """Wherever both texts name their own in the same spelling."""
    assert is_same(recorded, live)


OTHERS = {
    "a longer name": ("/home/ann/ws2", "/tmp/x y/again2"),
    "a longer name with a dash": ("/home/ann/ws-old", "/tmp/x y/again-old"),
    "another ending": ("/home/ann/ws.bak", "/tmp/x y/again.bak"),
    "a backup": ("/home/ann/ws~", "/tmp/x y/again~"),
    "an encoded space goes on": ("file:///home/ann/ws%20copy", "file:///tmp/x%20y/again%20copy"),
    "within another path": ("/mnt/home/ann/ws", "/mnt/tmp/x y/again"),
    "another spelling": ("%2Fhome%2Fann%2Fws", "/tmp/x y/again"),
    "another file": ("/home/ann/ws/a", "/tmp/x y/again/b"),
    "another folder": ("/home/ann/ws", "/tmp/other"),
    "named once more": ("/home/ann/ws", "/tmp/x y/again /tmp/x y/again"),
}


@pytest.mark.parametrize(("recorded", "live"), OTHERS.values(), ids=OTHERS)
def test_what_is_not_the_folder_differs(recorded, live):
    """A replay is exact: what only begins alike is something else."""
    assert not is_same(recorded, live)


def test_an_answer_names_the_folder_here():
    """In the spelling in which the recorded one named its own."""
    known = places()
    assert known.look_through("".join(f"{recorded}\n" for recorded, _ in NAMED.values()))
    pairs = [
        pair
        for recorded in known.recorded
        for pair in zip(spellings(recorded), spellings(known.find_folder(recorded)), strict=True)
    ]
    answers = Substitution(pairs)
    for recorded, live in NAMED.values():
        assert answers.rename_in_value(recorded) == live
    for recorded, _ in list(OTHERS.values())[:6]:
        assert answers.rename_in_value(recorded) == recorded


def test_a_folder_that_has_not_moved_is_no_folder_of_ours():
    """Nothing is compared otherwise where both runs are at one place, by whatever name."""
    assert not places(
        here={"workspace": "/home/ann/ws", "workspace/given": "/srv/link"}, there=THERE | {}
    ).recorded
    assert not places(there={"workspace": "/a/b"}, here={"workspace": "/a/b"}).are_moved


def test_links_and_the_home_give_other_names(tmp_path, monkeypatch):
    """The folder that a shell is in, and the one that was given, where these are links."""
    real = tmp_path / "real"
    (real / "ws").mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    monkeypatch.chdir(tmp_path / "link" / "ws")
    monkeypatch.setenv("PWD", str(tmp_path / "link" / "ws"))
    monkeypatch.setenv("HOME", str(real))
    found = own_places(os.path.realpath(real / "ws"), str(tmp_path / "link" / "ws"))
    assert found["cwd"] == found["workspace"] == os.path.realpath(real / "ws")
    assert found["cwd/given"] == found["workspace/given"] == str(tmp_path / "link" / "ws")
    assert found["workspace/home"] == "~/ws"
    monkeypatch.setenv("PWD", "/nowhere")
    assert "cwd/given" not in own_places()
