# @attack sleeps in children that ignore signals while it waits
# @expect wall_limit
# @limits wall=700
import os
import signal
import time

for _ in range(5):
    if os.fork() == 0:
        for s in range(1, 32):
            try:
                signal.signal(s, signal.SIG_IGN)
            except OSError:
                pass
        time.sleep(1000)
os.wait()
