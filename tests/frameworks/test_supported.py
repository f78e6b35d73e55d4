"""``docs/supported.md`` says what the last tries came to, and nothing else."""

from tests.frameworks import table
from tests.frameworks.installed import frameworks


def test_the_page_is_what_the_results_make_it():
    """Nobody edits it by hand."""
    assert table.PAGE.read_text() == table.page(table.read_results())


def test_every_agent_is_on_the_page():
    """An agent that was never tried is not left out silently."""
    tried = {(result["framework"], result["agent"]) for result in table.read_results()}
    assert tried == {(each.name, agent.stem) for each in frameworks() for agent in each.agents}


def test_a_failure_is_shown_as_one():
    """With the first line of what it said."""
    replays = {"same folder": "", "other folder": "event 2 differs", "other home and date": ""}
    result = {
        "framework": "some",
        "version": "some 1.0",
        "agent": "plain",
        "recorded": "",
        "replays": replays,
    }
    page = table.page([result])
    assert "**0 of 1 agents are exact in all three.**" in page
    assert "| some | some 1.0 | plain | exact | **failed** | exact |" in page
    assert "- **some, plain**: `event 2 differs`" in page


def test_what_was_printed_otherwise_is_told_from_a_divergence():
    """But it is not counted as exact."""
    replays = {
        "same folder": "it printed something else: 'a', not 'b'",
        "other folder": "it printed other durations: '0.2 s', not '0.1 s'",
        "other home and date": "",
    }
    result = {"framework": "some", "version": "1", "agent": "plain", "recorded": "", "replays": replays}
    page = table.page([result])
    assert "**0 of 1 agents are exact in all three.**" in page
    assert "| plain | **other output** | **other durations** | exact |" in page
