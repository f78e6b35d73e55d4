import os
import subprocess
import sys

from _ask import ask

print(ask("What is to be done?"), flush=True)
subprocess.run(["git", "init", "--quiet", "repo"], check=True)
subprocess.run(["sh", "-c", "echo built in $(date +%N); ls"], check=True)
os.system("echo $$; uname")
subprocess.check_call([sys.executable, "-c", "import time; print(time.time_ns())"])
print(ask("And then?"))
