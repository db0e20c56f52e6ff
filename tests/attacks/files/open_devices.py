# @attack opens devices
# @expect held
import os

allowed = {"null", "zero", "full", "random", "urandom", "shm", "fd", "stdin", "stdout", "stderr", "mqueue"}
try:
    extra = set(os.listdir("/dev")) - allowed
except OSError:
    extra = set()
print("ESCAPED: %s" % extra if extra else "held")
