import subprocess
import sys

from _ask import TOPICS, ask

CHILD = "import sys; from _ask import ask; print(ask('Say something about ' + sys.argv[1]))"
children = [
    subprocess.Popen([sys.executable, "-c", CHILD, topic], stdout=subprocess.PIPE, text=True)
    for topic in TOPICS[:4]
]
said = [child.communicate()[0].strip() for child in children]
print(ask("Sum up: " + "; ".join(said)))
