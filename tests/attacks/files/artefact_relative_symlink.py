# @attack hands in a relative link as its result
# @expect ok
# @collect out
# @artefact refused
import os

os.symlink("../../../../../../etc/passwd", "out")
