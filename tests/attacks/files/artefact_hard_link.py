# @attack hands in a file with two names as its result
# @expect ok
# @collect out
# @artefact refused
import os

open("first", "w").write("x")
os.link("first", "out")
