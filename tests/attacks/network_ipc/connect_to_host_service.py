# @attack connects to a service of the host
# @expect held
# @arguments $PORT
import socket
import sys

try:
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.settimeout(2)
    s.connect(("127.0.0.1", int(sys.argv[1])))
    print("ESCAPED")
except OSError:
    print("held")
