# @attack hands in a file of an apparent terabyte
# @expect ok | file_limit | signal
# @collect out
# @artefact small
import os

with open("out", "wb") as f:
    try:
        os.ftruncate(f.fileno(), 1 << 40)
    except OSError:
        pass
