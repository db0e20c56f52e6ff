# @attack meets a later run at an abstract socket
# @expect held
# @repeat 3
import os
import socket

met = False
for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM]:
    s = socket.socket(socket.AF_UNIX, kind)
    try:
        s.connect("\0fixpoint-rendezvous-%d" % kind)
        met = True
    except OSError:
        pass
if os.fork() == 0:
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0fixpoint-rendezvous-1")
    s.listen()
    os.close(1)
    s.accept()
print("ESCAPED" if met else "held", flush=True)
os._exit(0)
