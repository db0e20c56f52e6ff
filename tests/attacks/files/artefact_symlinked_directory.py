# @attack hands in a link over a linked directory as its result
# @expect ok
# @collect out
# @artefact refused
import os

os.symlink("/etc", "d")
os.symlink("d/passwd", "out")
