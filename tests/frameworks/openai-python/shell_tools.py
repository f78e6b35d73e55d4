import os
import subprocess

from _ask import ask

for words in (
    "date",
    "ls -la",
    "uuidgen || cat /proc/sys/kernel/random/uuid",
    "whoami; hostname; pwd",
    "env | sort | head -3",
    "ps | wc -l",
    "df -h . | tail -1",
    "uptime",
    "mktemp",
    "python -c 'import os; print(os.getpid())'",
):
    out = subprocess.run(words, shell=True, capture_output=True, text=True)
    print(ask(f"$ {words}\n{out.stdout}{out.stderr}")[:12])
print(ask(os.popen("echo hi; date +%s%N").read())[:12])
os.system("echo printed by a shell $$ $(date +%N)")
