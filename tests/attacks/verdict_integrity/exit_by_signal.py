# @attack kills itself with a signal that it handles by ending well
import os
import signal

signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

def f(x):
    os.kill(os.getpid(), signal.SIGTERM)
    return 0
