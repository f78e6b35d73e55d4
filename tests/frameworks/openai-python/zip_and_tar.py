import base64
import gzip
import io
import tarfile
import zipfile
from pathlib import Path

from _ask import TOPICS, ask

Path("notes").mkdir()
for topic in TOPICS[:3]:
    Path("notes", topic).with_suffix(".txt").write_text(ask(f"Say something about {topic}"))
packed = io.BytesIO()
with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
    for path in sorted(Path("notes").glob("*.txt")):
        archive.writestr(path.name, path.read_text())
Path("notes.zip").write_bytes(packed.getvalue())
tarred = io.BytesIO()
with tarfile.open(fileobj=tarred, mode="w:gz") as archive:
    for path in sorted(Path("notes").glob("*.txt")):
        entry = tarfile.TarInfo(path.name)
        entry.size = path.stat().st_size
        archive.addfile(entry, path.open("rb"))
with open("notes.tar.gz", "wb") as file:
    file.write(tarred.getvalue())
print(ask("Unpack " + base64.b64encode(packed.getvalue()).decode())[:8])
print(ask("Unzip " + base64.b64encode(gzip.compress(b"ants and bees")).decode())[:8])
