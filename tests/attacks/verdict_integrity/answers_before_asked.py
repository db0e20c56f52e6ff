# @attack writes many right-looking answers while it is imported
import os
import struct

for n in range(100):
    body = b"t4:s5:valueb16:" + bytes(16) + b"i%d:%dN" % (len(str(2 * n)), 2 * n)
    try:
        os.write(4, struct.pack("<I", len(body)) + body)
    except OSError:
        pass

def f(x):
    return 0
