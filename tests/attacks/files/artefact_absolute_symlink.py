# @attack hands in a link to a host file as its result
# @expect ok
# @collect out
# @artefact refused
import os

os.symlink("/etc/passwd", "out")
