# @attack climbs out by ..
# @expect held
# @arguments $CANARY
import os
import sys

def tries(path):
    for prefix in ["../" * 30, "/sandbox/box/" + "../" * 30, "/proc/self/root/", "/proc/self/cwd/" + "../" * 30, "/proc/self/fd/0/../../" + "../" * 30, "/dev/fd/1/" + "../" * 30]:
        yield prefix + path.lstrip("/")

for path in tries(sys.argv[1]):
    try:
        print("ESCAPED:", open(path).read())
        break
    except OSError:
        pass
else:
    print("held")
