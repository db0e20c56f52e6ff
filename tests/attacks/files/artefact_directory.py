# @attack hands in a directory as its result
# @expect ok
# @collect out
# @artefact refused
import os

os.mkdir("out")
