# @attack hands in a socket as its result
# @expect ok
# @collect out
# @artefact refused
import os

import socket
s = socket.socket(socket.AF_UNIX)
s.bind("out")
