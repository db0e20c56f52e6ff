# @attack gives itself a higher priority
# @expect held
import os

try:
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    print("ESCAPED")
except OSError:
    print("held")
