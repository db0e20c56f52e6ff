# @attack swaps a directory of its result for a link while it ends
# @expect ok | cpu_limit | wall_limit
# @collect d/passwd
# @artefact mine
import os
import threading

os.mkdir("real")
open("real/passwd", "w").write("mine")
os.symlink("/etc", "link")

def swap():
    while True:
        try:
            os.rename("real", "d")
            os.rename("d", "real")
            os.rename("link", "d")
            os.rename("d", "link")
        except OSError:
            pass

for _ in range(2):
    threading.Thread(target=swap, daemon=True).start()
import time

time.sleep(0.05)
os._exit(0)
