import atexit
import os
import signal
import threading
import time

from _ask import ask

heard = []
atexit.register(lambda: print(ask("The program ends")))
signal.signal(signal.SIGALRM, lambda *_: heard.append(ask("The alarm rang")))
signal.signal(signal.SIGUSR1, lambda *_: heard.append("a signal"))
signal.setitimer(signal.ITIMER_REAL, 0.05)
threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
while len(heard) < 2:
    time.sleep(0.005)
print(ask("Heard: " + "; ".join(heard)))
