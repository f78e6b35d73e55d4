"""Every verb that reads a run takes it at an address and in a pack, and names it as it was given."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Event

import pytest

import reenact
from reenact.cli import main
from reenact.corpus.stored import StoredCorpus
from reenact.errors import FormatError, StoreError, UsageError
from reenact.store.objects import ObjectStore
from reenact.store.pack import LocalFile, Pack, PackWriter
from reenact.viewer.shelf import Shelf
from tests.analysis.recordings import ask, search
from tests.corpus.test_objects import BadLine, bucket, line  # noqa: F401 — fixtures
from tests.hard import rounds
from tests.kills import killed_at

AGENT = "import reenact\n@reenact.tool\ndef find(what):\n    return what.upper()\nprint(find('lamp'))\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("agent.py").write_text(AGENT)
        assert main(["record", "-o", "runs/lamp", "--workspace", "--", sys.executable, "agent.py"]) == 0
        with reenact.capture("runs/deep/chat", redact="none"):
            ask("hello")
            search("x" * 40_000)
        assert reenact.pack("runs", out="team.pack").runs == 2
    return folder


@pytest.fixture
def team(recorded, tmp_path, monkeypatch):
    """Runs here, and the same in a pack; copies of runs go to a folder of their own."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    return tmp_path


SECRET = "hunter2-Zq81vLxw09TrKd55"


@pytest.fixture
def s3(line, monkeypatch):  # noqa: F811
    """Credentials as a user has them."""
    keys = {"AWS_ACCESS_KEY_ID": "AKIAPLANTED7EXAMPLE0", "AWS_SECRET_ACCESS_KEY": SECRET}
    more = {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": line[0], "AWS_ALLOW_HTTP": "true"}
    for name, value in (keys | more).items():
        monkeypatch.setenv(name, value)
    BadLine.faults, BadLine.seen = [], []
    return line[1]


@pytest.fixture(params=["pack", "s3", "pack on s3", "file"])
def place(request, team):
    """How a run is named in each place that is no folder: a function of its name, '' for all runs."""
    if request.param == "pack":
        return lambda name: f"team.pack#{name}" if name else "team.pack"
    if request.param == "file":
        return lambda name: f"file://{team}/runs/{name}".rstrip("/")
    request.getfixturevalue("s3")
    if request.param == "s3":
        reenact.push("runs", to=f"s3://team/{team.name}")
        return lambda name: f"s3://team/{team.name}/{name}".rstrip("/")
    reenact.pack("runs", out=f"s3://team/{team.name}/all.pack")
    return lambda name: f"s3://team/{team.name}/all.pack" + (f"#{name}" if name else "")


def tool_call():
    with reenact.open_artifact("runs/lamp") as artifact:
        return next(step.seq for step in artifact.steps() if step.kind == "tool")


def said(capsys, *words, status=0):
    found = main(list(words))
    out, err = capsys.readouterr()
    assert found == status, err
    return out + err


def test_every_reading_verb_says_what_it_says_of_the_folder(place, capsys, team):
    """But for the name; and nothing of it is left."""
    lamp, label = place("lamp"), place("lamp").removeprefix("file://")
    capsys.readouterr()
    verbs = [
        ["show", "RUN"], ["show", "RUN", "--json"], ["show", "RUN", "--at", "2"], ["verify", "RUN"],
        ["show", "RUN", "--transcript"],
        ["verify", "RUN", "--json"], ["stats", "RUN", "--json"], ["convert", "RUN", "--to", "replay-log"],
        ["files", "RUN"], ["diff", "RUN", "runs/lamp"], ["query", "select run from runs", "RUN", "--csv"],
    ]  # fmt: skip
    for verb in verbs:
        here = said(capsys, *("runs/lamp" if word == "RUN" else word for word in verb))
        there = said(capsys, *(lamp if word == "RUN" else word for word in verb))
        # Columns are as wide as the name.
        assert there.replace(label, "runs/lamp").split() == here.split(), verb
        assert "reenact-run-" not in there
    assert os.listdir(team / "temp") == []


def test_all_runs_of_a_place_are_read(place, capsys, team):
    """As those of a folder; the index knows when nothing has changed."""
    everything = place("")
    deep, lamp = (place(name).removeprefix("file://") for name in ("deep/chat", "lamp"))
    shown = said(capsys, "show", everything)
    assert deep in shown
    assert lamp in shown
    assert "2 good" in said(capsys, "verify", everything)
    assert json.loads(said(capsys, "stats", everything, "--json"))["runs"] == 2
    rows = reenact.query("select run from runs order by run", everything).rows
    assert rows == [(deep,), (lamp,)]
    assert reenact.index(everything, out="corpus").added == 2
    assert reenact.index(out="corpus").unchanged == 2
    assert reenact.query("select run from runs order by run", "corpus").rows == rows
    report = reenact.export_runs(everything, "atif", "exported")
    assert sorted(run.path for run in report.runs) == [deep, lamp]
    assert Path("exported/deep/chat.json").exists()
    assert os.listdir(team / "temp") == []


def test_a_run_elsewhere_is_replayed_forked_and_tested(place, capsys, team):
    """Nothing is written beside it; a fork stands by itself."""
    lamp = place("lamp")
    words = [sys.executable, "agent.py"]
    report = reenact.replay_command(lamp, words)
    assert report.is_reproduced
    assert report.path == lamp.removeprefix("file://")
    at = tool_call()
    fork = reenact.fork_command(lamp, words, at=at, change={"replace": "TORCH"}, output="fork")
    assert fork.path == "fork"
    assert reenact.verify("fork").is_good
    assert main(["test", "--init", "runs/lamp", "test.yaml"]) == 0
    text = Path("test.yaml").read_text()
    assert "capture: runs/lamp" in text
    Path("test.yaml").write_text(text.replace("capture: runs/lamp", f"capture: {json.dumps(lamp)}"))
    outcome = reenact.test("test.yaml")
    assert outcome.passed, outcome
    assert reenact.checkout(lamp, "tree").files == 1
    assert "agent.py" in os.listdir("tree")


def test_a_first_test_is_written_for_a_run_elsewhere(place, team, capsys):
    """It names the run where it is: by its address, or relative to itself."""
    lamp = place("lamp")
    os.mkdir("tests")
    said(capsys, "test", "--init", lamp, "tests")
    text = Path("tests/test.yaml").read_text()
    beside = lamp if lamp.startswith("s3:") else os.path.relpath(lamp.removeprefix("file://"), "tests")
    assert f"capture: {beside}" in text
    assert "id: lamp" in text
    assert reenact.test("tests").passed
    assert os.listdir(team / "temp") == []


def test_files_are_read_wherever_they_are(place, capsys, team):
    """`validate` and `import` say of the files of a run what they say of those in the folder."""
    for name, here in (("lamp", "runs/lamp"), ("", "runs")):
        there = place(name).removeprefix("file://")
        for words, status in ((["validate"], 1), (["import", "-o", "imported"], 2)):
            in_folder = said(capsys, *words, here, status=status)
            elsewhere = said(capsys, *words, place(name), status=status)
            assert sorted(elsewhere.replace(there, here).split()) == sorted(in_folder.split())
    assert os.listdir(team / "temp") == []


def test_a_run_that_is_changed_is_named_by_its_path(team, capsys):
    """Also if it was given as an address."""
    lamp = team / "runs" / "lamp"
    words = [sys.executable, "agent.py"]
    assert f"reenact: {lamp}: unchanged" in said(capsys, "update", f"file://{lamp}", "--", *words)
    assert reenact.update_command(f"file://{lamp}", words).path == str(lamp)
    assert reenact.recover(f"file://{lamp}").path == str(lamp)


def test_the_viewer_fetches_a_run_when_it_is_looked_at(place, team):
    from contextlib import closing

    with closing(Shelf([Path(place(""))])) as shelf:
        assert len(shelf.ids) == 2
        name = next(each for each in shelf.ids if each.endswith("lamp"))
        assert shelf.line(name).size_bytes > 0
        with shelf.open(name) as artifact:
            artifact.index()
            assert artifact.counts().steps >= 1
    assert os.listdir(team / "temp") == []


def test_runs_of_a_place_are_pushed_and_packed(place, team, s3):
    """Without pulling them first, by their names in that place; one of them, or all."""
    names = ["deep/chat", "lamp"]
    assert sorted(reenact.push(place(""), to=f"s3://team/{team.name}-2").pushed) == names
    reenact.pack(place(""), out="again.pack")
    assert [run.name for run in reenact.list_runs("again.pack")] == names
    reenact.pack(place("lamp"), out="one.pack")
    assert [run.name for run in reenact.list_runs("one.pack")] == ["lamp"]
    assert reenact.verify_runs("again.pack", "one.pack").is_good
    assert os.listdir(team / "temp") == []


def test_a_file_at_an_address_is_hashed(team, s3, capsys):
    """As the file that was pushed."""
    reenact.push("runs", to=f"s3://team/{team.name}")
    here = said(capsys, "hash", "runs/lamp/manifest.json")
    assert said(capsys, "hash", f"s3://team/{team.name}/lamp/manifest.json") == here
    assert said(capsys, "hash", f"file://{team}/runs/lamp/manifest.json") == here
    missing = said(capsys, "hash", f"s3://team/{team.name}/lamp/none.json", status=2)
    assert missing.startswith(f"reenact: s3://team/{team.name}/lamp/none.json: ")
    assert missing.count("\n") == 1


def test_what_is_not_there_is_one_line(place, capsys):
    """With the name as it was given."""
    for verb in (["show"], ["verify"], ["stats"], ["query", "select 1 from runs"], ["files"]):
        text = said(capsys, *verb, place("nothing"), status=2)
        assert text.startswith(f"reenact: {place('nothing').removeprefix('file://').partition('#')[0]}"), text
        assert text.count("\n") == 1, text


def test_opening_one_run_reads_that_run_alone(place, capsys, request):
    """Over the line goes that run, a list of its objects, or a few pages of the directory."""
    if not place("").startswith("s3://"):
        pytest.skip("is about object storage")
    BadLine.seen.clear()
    BadLine.sent_bytes = 0
    said(capsys, "show", place("lamp"))
    assert not [request for request in BadLine.seen if "deep" in request]
    assert len(BadLine.seen) < 20
    run_bytes = sum(file.stat().st_size for file in Path("runs/lamp").rglob("*") if file.is_file())
    assert BadLine.sent_bytes <= run_bytes + 64 * 1024


def test_opening_one_run_of_a_large_pack_reads_that_run_and_64_kib(team, s3):
    """Counted where the server sends it."""
    with Path("large.pack").open("wb") as stream:
        writer = PackWriter(stream)
        for number in range(3000):
            writer.add(f"team/agent-{number:06d}", Path("runs/lamp"), ["manifest.json", "events.jsonl"])
        writer.close()
    s3.put_object(Bucket="team", Key="large.pack", Body=Path("large.pack").read_bytes())
    stored = Pack(LocalFile(Path("large.pack"))).find("team/agent-001500")
    BadLine.sent_bytes = 0
    with reenact.open_artifact("s3://team/large.pack#team/agent-001500") as artifact:
        artifact.index()
    assert stored.length < BadLine.sent_bytes <= stored.length + 64 * 1024


def test_damage_is_named_as_the_run_is(team, capsys):
    content = bytearray(Path("team.pack").read_bytes())
    start = Pack(LocalFile(Path("team.pack"))).find("lamp").start
    content[start + 50] ^= 1
    Path("team.pack").write_bytes(bytes(content))
    for verb in ("show", "verify", "files"):
        text = said(capsys, verb, "team.pack#lamp", status=2)
        assert text.startswith("reenact: team.pack#lamp: is not what was packed")
    text = said(capsys, "verify", "team.pack", status=2)
    assert "1 good, 1 unreadable" in text
    assert reenact.index("team.pack", out="corpus").problems


@pytest.mark.parametrize("place", [0, 7])
def test_damage_of_how_a_pack_begins_is_found(team, capsys, place):
    """Which no run needs; the pack is known by its end then."""
    content = bytearray(Path("team.pack").read_bytes())
    content[place] ^= 1
    Path("team.pack").write_bytes(bytes(content))
    for path in ("team.pack", "team.pack#lamp"):
        assert "team.pack: is not a complete pack: it does not begin" in said(
            capsys, "verify", path, status=2
        )


def test_what_is_shorter_than_a_pack_is_told_at_an_address(s3, capsys):
    for content in (b"", b"REPACK"):
        s3.put_object(Bucket="team", Key="short.pack", Body=content)
        text = said(capsys, "verify", "s3://team/short.pack#lamp", status=2)
        assert text.startswith("reenact: s3://team/short.pack")
        assert text.count("\n") == 1


def test_a_damaged_run_in_a_pack_is_found_as_in_a_folder(team, capsys):
    """The pack holds what was packed; whether that is good is the run's own matter."""
    events = Path("runs/lamp/events.jsonl")
    events.write_bytes(events.read_bytes().replace(b"lamp", b"pram"))
    reenact.pack("runs", out="bad.pack")
    text = said(capsys, "verify", "bad.pack#lamp", status=1)
    assert "bad: the capture bad.pack#lamp has" in text
    assert said(capsys, "show", "bad.pack#lamp", status=2).count("bad.pack#lamp/events.jsonl") == 1
    with pytest.raises(FormatError, match=r"bad.pack#lamp: the stored run is damaged"):
        raise FormatError(reenact.pull("bad.pack#lamp", "back").problems[0])


def test_packs_are_written_whole_and_never_over_another(team, capsys, monkeypatch):
    """Whatever is wrong is one line, and there is no file then."""
    assert "team.pack: exists already" in said(capsys, "pack", "runs", "-o", "team.pack", status=2)
    assert "other: No such file" in said(capsys, "pack", "other", "-o", "b.pack", status=2)

    def interrupt(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("reenact.store.pack.PackWriter.close", interrupt)
        assert main(["pack", "runs", "-o", "b.pack"]) == 130
    assert not os.path.exists("b.pack")
    assert not [name for name in os.listdir() if name.startswith(".tmp")]
    from tests.cli.commands import interrupted

    interrupted(Path("runs/torn").absolute(), lambda: search("x"))
    capsys.readouterr()
    text = said(capsys, "pack", "runs", "-o", "b.pack", status=2)
    assert "runs/torn: is interrupted; only finished runs are packed" in text


def test_a_pack_that_is_killed_is_whole_or_not_there(team):
    """At any of the moments at which it changes something on the disk; the next call makes it."""
    reenact.pack("runs", out="whole.pack")
    expected = reenact.list_runs("whole.pack")
    for moment in itertools.count(1, rounds(7, 1)):
        shutil.rmtree("packs", ignore_errors=True)
        was_killed = killed_at(moment, lambda: reenact.pack("runs", out="packs/all.pack"))
        if not Path("packs/all.pack").exists():
            reenact.pack("runs", out="packs/all.pack")
        assert [run.name for run in reenact.list_runs("packs/all.pack")] == [run.name for run in expected]
        assert Path("packs/all.pack").read_bytes() == Path("whole.pack").read_bytes()
        if not was_killed:
            break
    assert moment > 10


def test_a_pull_that_is_killed_leaves_whole_runs(team):
    """Likewise; the next call brings the others."""
    reenact.pack("runs", out="all.pack")
    count = len(reenact.list_runs("all.pack"))
    for moment in itertools.count(1, rounds(29, 1)):
        shutil.rmtree("back", ignore_errors=True)
        was_killed = killed_at(moment, lambda: reenact.pull("all.pack", "back"))
        files = Path("back").rglob("manifest.json")
        here = [file.parent for file in files if "/." not in str(file)]
        assert all(reenact.verify(run).is_good for run in here)
        report = reenact.pull("all.pack", "back")
        assert not report.problems
        assert len(report.pulled) + len(report.already_here) == count
        assert reenact.verify_runs("back").is_good
        if not was_killed:
            break
    assert moment > 20


def test_a_pack_becomes_folders_again(team):
    assert [run.name for run in reenact.list_runs("team.pack")] == ["deep/chat", "lamp"]
    assert reenact.pull("team.pack", "back").pulled == ["back/deep/chat", "back/lamp"]
    assert reenact.pull("team.pack", "back").already_here == ["back/deep/chat", "back/lamp"]
    assert reenact.pull("team.pack#lamp", "one").pulled == ["one/lamp"]
    for file in Path("runs").rglob("*"):
        if file.is_file():
            assert (Path("back") / file.relative_to("runs")).read_bytes() == file.read_bytes()


def test_a_fork_in_a_pack_has_its_parent(team):
    """What the two share is stored once, there too."""
    at = tool_call()
    reenact.fork_command(
        "runs/lamp",
        [sys.executable, "agent.py"],
        at=at,
        change={"replace": "TORCH"},
        output="runs/forks/torch",
    )
    reenact.pack("runs", out="forks.pack")
    shutil.rmtree("runs")
    assert reenact.verify("forks.pack#forks/torch").is_good
    with reenact.open_artifact("forks.pack#forks/torch") as artifact:
        artifact.index()
        assert artifact.problem is None


def test_a_path_that_is_there_is_that_path(team):
    """Whatever signs are in it."""
    shutil.copytree("runs/lamp", "team.pack#lamp")
    assert reenact.verify("team.pack#lamp").path == "team.pack#lamp"
    shutil.copytree("runs/lamp", "a#b")
    assert reenact.verify("a#b").is_good


def stored_in(client, prefix):
    found = client.list_objects_v2(Bucket="team", Prefix=prefix).get("Contents", [])
    return {each["Key"]: client.get_object(Bucket="team", Key=each["Key"])["Body"].read() for each in found}


def test_a_run_is_recorded_to_an_address(team, s3, capsys):
    """It is there when that is said, and no longer here; credentials are in no file of it."""
    address = f"s3://team/{team.name}/monday"
    before = sorted(os.listdir("runs"))
    text = said(capsys, "record", "-o", address, "--", sys.executable, "agent.py")
    assert f"recorded {address}: " in text
    assert sorted(os.listdir("runs")) == before
    assert reenact.verify(address).is_good
    said(capsys, "index", address, "-o", "corpus")
    said(capsys, "pull", address, "back")
    stored = stored_in(s3, f"{team.name}/")
    assert f"{team.name}/monday/manifest.json" in stored
    files = [file.read_bytes() for file in team.rglob("*") if file.is_file()]
    assert not [content for content in [*stored.values(), *files] if SECRET.encode() in content]
    text = said(capsys, "record", "-o", address, "--", sys.executable, "agent.py", status=2)
    assert text == f"reenact: {address}: holds a capture already; record to another address\n"
    assert sorted(os.listdir("runs")) == before


def test_what_cannot_be_stored_is_kept_and_named(team, s3, capsys, monkeypatch):
    """Somebody else was faster: the command has done its work, so its status stays, and nothing is lost."""

    push = ObjectStore.push

    def push_second(store, name, path):
        store.put("manifest.json", b"{}")
        return push(store, name, path)

    monkeypatch.setattr(ObjectStore, "push", push_second)
    address = f"s3://team/{team.name}/tuesday"
    text = said(capsys, "record", "-o", address, "--", sys.executable, "agent.py")
    assert f"the capture is not stored: {address}: is another run" in text
    kept = text.partition("it is kept in ")[2].partition(";")[0]
    assert reenact.verify(kept).is_good


def test_a_wrong_address_is_told_before_anything_runs(team, s3, capsys):
    for address, why in (
        ("s3://nobody/x", "no such bucket"),
        ("s3://a:b@team/x", "must not hold credentials"),
    ):
        found = main(["record", "-o", address, "--", sys.executable, "-c", "open('ran', 'w')"])
        assert found in (2, 3)
        assert why in capsys.readouterr().err
    assert not os.path.exists("ran")


def test_a_damaged_manifest_is_named_once(s3, team, capsys):
    """Where it was noticed while the run was fetched."""
    reenact.push("runs", to=f"s3://team/{team.name}-damaged")
    store = ObjectStore(f"s3://team/{team.name}-damaged/lamp", is_written=True)
    assert store.put_new("broken/manifest.json", b"{")
    told = said(capsys, "verify", f"s3://team/{team.name}-damaged/lamp/broken", status=2)
    assert told.startswith(f"reenact: s3://team/{team.name}-damaged/lamp/broken/manifest.json: ")
    assert told.count("broken") == 1


@pytest.mark.parametrize(
    "verb", [["recover"], ["prune", "--older-than", "1d"], ["update"], ["show", "--tree"]], ids=" ".join
)
def test_a_verb_that_takes_paths_names_the_address_as_given(verb, capsys, team):
    """It does not call it a missing file."""
    words = [*verb, "s3://team/runs/lamp", *(["--", "true"] if verb == ["update"] else [])]
    told = said(capsys, *words, status=3)
    assert "s3://team/runs/lamp: is not a folder on this machine; fetch it with: reenact pull" in told
    assert said(capsys, "recover", f"file://{team}/runs/lamp")


def test_a_server_that_is_not_there_is_one_line(capsys, s3, monkeypatch):
    """And so is an account that nobody named."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    told = said(capsys, "ls", "s3://team/x", status=2)
    assert told == (
        "reenact: s3://team/x: the server cannot be reached; check the connection, and its address if you "
        "set one\n"
    )
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_CONNECTION_STRING"):
        monkeypatch.delenv(name, raising=False)
    told = said(capsys, "ls", "az://team/x", status=2)
    assert told == "reenact: az://team/x: no account is named; set AZURE_STORAGE_ACCOUNT_NAME\n"


@pytest.mark.parametrize(
    ("server", "has_tls", "reason"),
    [
        ("nonsense", "true", "AWS_ENDPOINT_URL is not the address of a server; set it to https://HOST"),
        ("http://", "true", "AWS_ENDPOINT_URL is not the address of a server; set it to https://HOST"),
        ("https://[", "true", "Invalid IPv6 URL"),
        (None, "", "AWS_ENDPOINT_URL names a server without TLS; set AWS_ALLOW_HTTP=true to allow that"),
    ],
)
def test_a_server_that_cannot_be_one_is_one_line(server, has_tls, reason, capfd, s3, monkeypatch):
    """The library would panic, with a page of its own."""
    monkeypatch.setenv("AWS_ALLOW_HTTP", has_tls)
    if server is not None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    assert said(capfd, "ls", "s3://team/x", status=2) == f"reenact: s3://team/x: {reason}\n"


def test_a_run_at_an_address_is_sealed_there(team, s3, capsys):
    """The seal is for everybody and goes beside the run; the secret stays here."""
    reenact.push("runs/lamp", to=f"s3://team/{team.name}")
    address = f"s3://team/{team.name}/lamp"
    reenact.keygen("key")
    report = reenact.seal(address, "key")
    assert (report.seal, report.secret) == (f"{address}.seal.json", "lamp.seal.secret")
    stored = stored_in(s3, f"{team.name}/")
    assert f"{team.name}/lamp.seal.json" in stored
    assert not [name for name in stored if "secret" in name]
    Path("local.json").write_bytes(stored[f"{team.name}/lamp.seal.json"])
    assert reenact.verify(address, seal="local.json", key="key.pub").is_good
    out = said(capsys, "verify", address, "--seal", report.seal, "--key", "key.pub")
    assert f"good: the capture {address} is valid, and agrees with {report.seal}" in out
    said(capsys, "disclose", address, "2", "--field", "$.type", "--seal", report.seal)
    Path(report.secret).rename("hidden")
    told = said(capsys, "prove", address, "2", "--seal", report.seal, status=2)
    assert told.startswith("reenact: lamp.seal.secret: there is no such file; name the secret")
    said(capsys, "prove", address, "2", "--seal", report.seal, "--secret", "hidden")
    Path("hidden").rename(report.secret)
    with pytest.raises(reenact.StoreError, match="exists already"):
        reenact.seal(address, "key")
    assert reenact.seal("team.pack#lamp", "key", out="packed.seal.json").seal == "packed.seal.json"


def test_export_takes_the_runs_that_an_index_knows(team, capsys):
    """Those that ended otherwise are not opened, and neither is what is gone."""
    with pytest.raises(KeyError), reenact.capture("runs/failed", redact="none"):
        ask("hello")
        raise KeyError
    reenact.index("runs", out="corpus")
    shutil.rmtree("runs/lamp")
    Path("runs/failed/events.jsonl").write_text("damaged")
    text = said(capsys, "export", "corpus", "--status", "ok", "--to", "sft", "-o", "rows.jsonl")
    assert text.startswith("rows.jsonl  1 row")
    assert "failed/events.jsonl" in said(
        capsys, "export", "corpus", "--to", "sft", "-o", "all.jsonl", status=2
    )


TESTS = """
import pytest, reenact

@reenact.tool
def find(what):
    return what.upper()

@pytest.mark.reenact
def test_find():
    assert find("lamp") == "LAMP"
"""


def pytest_words(mode, address="s3://team/tests"):
    without = ("cacheprovider", "xdist", "asyncio")
    options = ["-q", "--rootdir", ".", *(word for name in without for word in ("-p", f"no:{name}"))]
    return [sys.executable, "-m", "pytest", *options, f"--reenact={mode}", f"--reenact-captures={address}"]


def run_pytest(mode, address="s3://team/tests"):
    done = subprocess.run(
        [*pytest_words(mode, address), "tests"], capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_pytest_records_to_an_address_and_replays_from_it(team, s3, monkeypatch):
    """Nothing is beside the tests, what is there is not replaced, and a bad line is tried again."""
    Path("tests").mkdir()
    Path("tests/test_it.py").write_text(TESTS)
    BadLine.faults = ["", "500", "reset"]
    status, said = run_pytest("record")
    assert status == 0, said
    assert [run.name for run in reenact.list_runs("s3://team/tests")] == ["tests/captures/test_it/test_find"]
    assert not Path("tests/captures").exists()
    BadLine.faults = ["", "slow"]
    status, said = run_pytest("replay")
    assert (status, "1 replayed" in said) == (0, True), said
    status, said = run_pytest("record")
    assert "nothing is replaced at an address" in said
    assert status == 1
    status, said = run_pytest("replay", "s3://no-such-bucket/x")
    assert (status, said.strip().count("\n")) == (4, 0), said
    assert "--reenact-captures: s3://no-such-bucket/x: there is no such bucket" in said


def kill_when_it_uploads(words, what):
    """Start *words*, and kill them when they send *what*."""
    BadLine.stop_at, BadLine.stopped, BadLine.released = what, Event(), Event()
    left_behind = Path("temporary").absolute()
    left_behind.mkdir(exist_ok=True)
    process = subprocess.Popen(
        words,
        env=os.environ | {"TMPDIR": str(left_behind)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        assert BadLine.stopped.wait(60), process.communicate(timeout=5)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        BadLine.stop_at = ""
        BadLine.released.set()


def test_export_of_a_corpus_without_a_wanted_run_says_what_was_left_out(team, capsys):
    """As for the folder itself."""
    reenact.index("runs", out="corpus")
    folder = said(capsys, "export", "runs", "--to", "sft", "-o", "one", "--status", "error")
    corpus = said(capsys, "export", "corpus", "--to", "sft", "-o", "two", "--status", "error")
    assert "left out: 2 runs" in folder
    assert corpus.replace("two", "one") == folder
    shutil.rmtree("runs")
    told = said(capsys, "export", "corpus", "--to", "sft", "-o", "three", status=3)
    assert told.startswith("reenact: corpus: no capture that it lists exists any more")


@pytest.mark.parametrize("to", ["atif", "har", "otlp"])
@pytest.mark.parametrize("stored", [False, True], ids=["here", "stored"])
def test_documents_are_exported_of_the_runs_of_a_corpus(to, stored, team, request, capsys):
    """Below the folder, even if there is one run only."""
    index = (
        f"s3://team/{team.name}-{to}/corpus"
        if stored and request.getfixturevalue("s3") is not None
        else "corpus"
    )
    reenact.index("runs", out=index)
    said(capsys, "export", "runs/lamp", "runs/deep/chat", "--to", to, "-o", "from-runs")
    said(capsys, "export", index, "--to", to, "-o", "from-index")
    assert documents("from-index") == documents("from-runs")
    shutil.rmtree("runs/deep")
    said(capsys, "export", index, "--to", to, "-o", "one")
    assert [file.stem for file in Path("one").iterdir()] == ["lamp"]


def documents(folder):
    return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def test_the_runs_and_the_trees_of_a_corpus_are_listed(team, capsys):
    """As those of the folder that was indexed."""
    words, change = [sys.executable, "agent.py"], {"replace": "TORCH"}
    reenact.fork_command("runs/lamp", words, at=tool_call(), change=change, output="runs/torch")
    reenact.index("runs", out="corpus")
    folder, index = (said(capsys, "show", name) for name in ("runs", "corpus"))
    assert index.replace(f"{team}/", "").split() == folder.split()
    trees = said(capsys, "show", "--tree", "corpus")
    assert trees == said(capsys, "show", "--tree", str(Path("runs").absolute()))
    shutil.rmtree("runs")
    told = said(capsys, "show", "corpus", status=3)
    assert told.startswith("reenact: corpus: no run that it lists exists any more")


@pytest.mark.parametrize(
    "verb",
    [["verify"], ["diff", "runs/lamp"], ["files"], ["pack", "-o", "x.pack"], ["index", "-o", "y"]],
    ids=" ".join,
)
def test_an_index_in_place_of_a_run_is_named_as_such(verb, team, capsys):
    reenact.index("runs", out="corpus")
    assert "reenact: corpus: is an index of runs" in said(capsys, *verb, "corpus", status=2)


def test_runs_are_not_pushed_to_the_name_of_a_pack(team, s3, capsys):
    """They could not be read there."""
    for source in ("team.pack", "runs"):
        told = said(capsys, "push", source, f"s3://team/{team.name}/x.pack", status=3)
        assert told.startswith(f"reenact: s3://team/{team.name}/x.pack: is the name of a pack; ")


def test_what_is_killed_while_it_uploads_has_stored_nothing(team, s3):
    """push, pack, record and pytest: nothing that looks whole is there; a push goes on where it was."""
    Path("tests").mkdir()
    Path("tests/test_it.py").write_text(TESTS)
    cli = [sys.executable, "-m", "reenact"]
    at = "s3://team/killed"
    words = {
        "push": ([*cli, "push", "runs", f"{at}/push"], "PUT /team/killed/push/deep/chat/manifest.json"),
        "pack": ([*cli, "pack", "runs", "-o", f"{at}/pack/all.pack"], "PUT /team/killed/pack/all.pack"),
        "record": (
            [*cli, "record", "-o", f"{at}/record", "--", sys.executable, "agent.py"],
            "PUT /team/killed/record/manifest.json",
        ),
        "pytest": (
            [*pytest_words("record", f"{at}/pytest"), "tests"],
            "PUT /team/killed/pytest/tests/captures/test_it/test_find/manifest.json",
        ),
    }
    for name, (command, what) in words.items():
        kill_when_it_uploads(command, what)
        assert reenact.list_runs(f"{at}/{name}") == [], name
        assert name != "pack" or not list(stored_in(s3, "killed/pack"))
    assert main(words["push"][0][3:]) == 0  # which completes what was begun
    assert len(reenact.list_runs(at)) == 3  # what was recorded is here still, and went along


def test_an_index_is_kept_at_an_address(team, s3, capsys, monkeypatch):
    """Made, brought up to date, asked, counted and exported from there; the same rows as of one here."""
    at = "s3://team/corpora/one"
    BadLine.faults = ["500", "reset", "slow"]
    assert "2 runs" in said(capsys, "index", "runs", "-o", at)
    reenact.index("runs", out="here")
    sql = "select * from calls order by run, seq"
    BadLine.faults = ["", "truncated", "slow", "500"]
    assert reenact.query(sql, at) == reenact.query(sql, "here")
    BadLine.seen.clear()
    assert reenact.query("select count(*) from runs", at).rows == [(2,)]
    assert not [path for path in BadLine.seen if "/events/" in path or "/calls/" in path]
    assert said(capsys, "stats", at, "--json") == said(capsys, "stats", "here", "--json")
    assert "1 row" in said(capsys, "export", at, "--to", "sft", "-o", "rows.jsonl", "--status", "ok")
    shutil.copytree("runs/lamp", "runs/new")
    shutil.rmtree("runs/deep")
    report = reenact.index(out=at)
    assert (report.path, report.added, report.removed, report.unchanged) == (at, 1, 1, 1)
    assert reenact.query("select run from runs order by 1", at).rows == [("runs/lamp",), ("runs/new",)]
    shelf = Shelf([at])
    assert [shelf.line(run).status for run in shelf.ids] == ["ok", "ok"]
    before = stored_in(s3, "corpora/one")
    assert reenact.index(out=at).unchanged == 2
    assert stored_in(s3, "corpora/one") == before
    assert os.listdir(team / "temp") == []


def test_of_two_who_index_at_an_address_one_is_told(team, s3, monkeypatch):
    """Whoever comes second changes nothing, be there a corpus before or not."""
    at = "s3://team/corpora/two"
    for runs in ("runs/lamp", "runs"):
        publish = StoredCorpus.publish

        def publish_second(self, *files, runs=runs, publish=publish):
            monkeypatch.setattr(StoredCorpus, "publish", publish)
            reenact.index(runs, out=at)
            publish(self, *files)

        monkeypatch.setattr(StoredCorpus, "publish", publish_second)
        with pytest.raises(StoreError, match="was brought up to date by somebody else meanwhile; try again"):
            reenact.index("runs/deep", out=at)
        names = reenact.query("select run from runs order by run", at).rows
        assert ("runs/lamp",) in names
        assert len(names) == (1 if runs == "runs/lamp" else 2)


def test_what_is_wrong_with_a_corpus_at_an_address_is_one_line(team, s3):
    """Another version, a file that is gone or not whole, a killed writer's files, something else."""
    at, key = "s3://team/corpora/three", "corpora/three"
    kill_when_it_uploads(
        [sys.executable, "-m", "reenact", "index", "runs", "-o", at], f"PUT /team/{key}/corpus.json"
    )
    assert stored_in(s3, key)
    with pytest.raises(StoreError, match="three: holds no run"):
        reenact.query("select 1 from runs", at)
    assert reenact.index("runs", out=at).added == 2
    assert reenact.index("runs", out=at, full=True).added == 2
    reenact.push("runs", to="s3://team/other")
    with pytest.raises(UsageError, match=r"s3://team/other: holds something else \(deep\); name a new one"):
        reenact.index("runs", out="s3://team/other")
    manifest = s3.get_object(Bucket="team", Key=f"{key}/corpus.json")["Body"].read()
    s3.put_object(
        Bucket="team", Key=f"{key}/corpus.json", Body=manifest.replace(b'"version": 1', b'"version": 9')
    )
    with pytest.raises(FormatError, match=r"^s3://team/corpora/three/corpus.json: the corpus has version 9"):
        reenact.query("select 1 from runs", at)
    s3.put_object(Bucket="team", Key=f"{key}/corpus.json", Body=manifest)
    s3.put_object(Bucket="team", Key=max(stored_in(s3, f"{key}/runs")), Body=b"PAR1")
    with pytest.raises(StoreError, match=r"runs/0+\d.parquet: 4 of \d+ bytes came"):
        reenact.query("select 1 from runs", at)
    with pytest.raises(StoreError, match="is missing or incomplete; build the index again"):
        reenact.index(out=at)


def test_recordings_at_an_address_are_imported(team, s3):
    """One object, and all below an address, each time the same."""
    fixture = Path(__file__).parents[1] / "importers" / "fixtures" / "cassetter.yaml"
    for name in ("tapes/a/one.yaml", "tapes/two.yaml"):
        s3.put_object(Bucket="team", Key=name, Body=fixture.read_bytes())
    BadLine.faults = ["", "500", "truncated"]
    report = reenact.import_runs("s3://team/tapes", "imported", jobs=1)
    assert sorted(run.path for run in report.runs) == ["imported/a/one", "imported/two"]
    reenact.import_runs("s3://team/tapes/two.yaml", "alone")
    again = reenact.import_runs("s3://team/tapes/two.yaml", "again")
    assert Path("alone/events.jsonl").read_bytes() == Path("again/events.jsonl").read_bytes()
    assert again.verdict == "whole"
    assert os.listdir(team / "temp") == []


def test_what_cannot_be_imported_is_named_by_its_address(team, s3):
    """One object, or all below an address: not by the copy that was read."""
    for name in ("odd/run.jsonl", "odd/notes.txt"):
        s3.put_object(Bucket="team", Key=name, Body=b"nothing of a run\n")
    for address in ("s3://team/odd/run.jsonl", "s3://team/odd"):
        report = reenact.import_runs(address, "imported")
        assert [failed.source for failed in report.failed] == [address]
        assert str(team / "temp") not in str(report)


def test_actions_at_an_address_are_validated(team, s3, capsys):
    """In one object, and below an address; with the words for the files themselves, but for the names."""
    good = (Path(__file__).parents[2] / "conformance/action/good/action.json").read_bytes()
    os.mkdir("actions")
    for name, text in (("one.json", good), ("two.jsonl", b"{}\n{\n")):
        Path("actions", name).write_bytes(text)
        s3.put_object(Bucket="team", Key=f"actions/{name}", Body=text)
    for name, status in (("", 2), ("/one.json", 0), ("/two.jsonl", 2)):
        here = said(capsys, "validate", f"actions{name}", status=status)
        by_path = said(capsys, "validate", f"file://{team}/actions{name}", status=status)
        assert by_path.replace(f"{team}/", "") == here
        there = said(capsys, "validate", f"s3://team/actions{name}", status=status)
        assert there.replace("s3://team/", "") == here
    missing = said(capsys, "validate", "s3://nobody/actions", status=2)
    assert "s3://nobody/actions: there is no such bucket or object; check the address" in missing
    assert os.listdir(team / "temp") == []


def test_runs_at_an_address_are_made_again(team, s3):
    """A shadow run fetches each; what is kept of it stands by itself."""
    reenact.push("runs/lamp", to="s3://team/shadow")
    report = reenact.shadow("s3://team/shadow", [sys.executable, "agent.py"], output="forks")
    assert [run.path for run in report.runs] == ["s3://team/shadow/lamp"]
    assert report.counts["same"] == 1, report.runs
    assert reenact.verify("forks/0001-lamp").is_good
