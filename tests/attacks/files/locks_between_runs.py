# @attack keeps a lock on a shared file that another run would wait for
# @expect held | exit
# @repeat 2
import fcntl
import os
import sys

for path in [sys.executable, os.__file__, "/usr/bin", "/"]:
    with open(os.open(path, os.O_RDONLY), "rb") as f:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held")
