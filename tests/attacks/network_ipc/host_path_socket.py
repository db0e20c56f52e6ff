# @attack connects to a socket file of the host
# @expect held
# @arguments $SOCKET
import socket
import sys

try:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    print("ESCAPED")
except OSError:
    print("held")
