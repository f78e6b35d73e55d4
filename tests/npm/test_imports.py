"""A trace bundle that Codex wrote is imported, and Codex itself replays it without its model."""

import os

from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.cli.commands import run
from tests.npm.conftest import installed
from tests.npm.test_others import AGENTS, CODEX_PROVIDER, QUESTION

OPTIONS = ("exec", "-m", "gpt-5-codex", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
PROVIDER = ("-c", "model_provider=reenact", "-c", f"model_providers.reenact={CODEX_PROVIDER}")


def test_a_bundle_of_codex_is_replayed_by_codex(tmp_path):
    """Nothing but the bundle is needed; its shell commands really run."""
    place = installed(AGENTS["codex"].package, AGENTS["codex"].version)
    program = next(each for each in place.parents if each.name == "node_modules") / ".bin" / "codex"
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "one.txt").touch()
    environment = {
        "HOME": str(tmp_path),
        "CODEX_HOME": str(tmp_path),
        "OPENAI_API_KEY": "unused",
        "PWD": str(tmp_path / "work"),
        "PATH": os.environ["PATH"],
    }

    def script(request):
        if request.tool_results:
            return Reply("There is one file.")
        return Reply("I look.", [ToolCall("exec_command", {"cmd": "ls"})])

    with ScriptedProvider(script) as provider:
        asked = environment | {"CODEX_ROLLOUT_TRACE_ROOT": str(tmp_path / "traces")}
        words = ["record", "-o", tmp_path / "run", "--", program, *OPTIONS, *PROVIDER, QUESTION]
        done = run(
            *words, cwd=tmp_path / "work", timeout_s=200, OPENAI_BASE_URL=provider.base_url("openai"), **asked
        )
    assert done.returncode == 0, done.stderr
    done = run("import", "traces", "-o", "imported", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [bundle] = (tmp_path / "imported").iterdir()
    words = ["replay", bundle, "--", program, *OPTIONS, *PROVIDER, QUESTION]
    done = run(*words, cwd=tmp_path / "work", timeout_s=200, **environment)
    assert (done.returncode, done.stdout) == (0, "There is one file.\n"), done.stderr
    assert "reproduced, 2 calls answered from the capture" in done.stderr
