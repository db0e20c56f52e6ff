# @attack makes a tree so deep that a recursive delete would fail
# @expect held | file_limit | cpu_limit
import os

try:
    for i in range(10_000):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
except OSError:
    pass
print("held")
