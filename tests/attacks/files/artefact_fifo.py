# @attack hands in a pipe as its result, so that the collector waits for ever
# @expect ok
# @collect out
# @artefact refused
import os

os.mkfifo("out")
