# @attack kills what started it
import os
import signal

def f(x):
    for s in [signal.SIGKILL, signal.SIGTERM]:
        try:
            os.kill(os.getppid(), s)
        except OSError:
            pass
    return 0
