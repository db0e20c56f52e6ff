# @attack lets a child end well while it hangs
import os
import time

pid = os.fork()
if pid:
    os.waitpid(pid, 0)
    time.sleep(1000)

def f(x):
    os._exit(0)
