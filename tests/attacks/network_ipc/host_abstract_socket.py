# @attack connects to an abstract socket of the host
# @expect held
# @arguments $ABSTRACT
import socket
import sys

try:
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0" + sys.argv[1])
    print("ESCAPED")
except OSError:
    print("held")
