# @attack listens for another run
# @expect held
import socket

try:
    s = socket.socket(socket.AF_INET)
    s.bind(("0.0.0.0", 0))
    s.listen()
    print("ESCAPED")
except OSError:
    print("held")
