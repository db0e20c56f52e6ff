# @attack learns who runs it and where
# @expect held
# @expect(fewer_namespaces) ok
import os
import socket

name = socket.gethostname()
print("held" if os.getpid() < 100 and os.getuid() != 0 and name in ("sandbox", "localhost", "fixpoint") else "LEARNED: %s %s %s" % (os.getpid(), os.getuid(), name))
