# @attack tells the judge that all tests are done
import os
import struct

def say(body):
    try:
        os.write(4, struct.pack("<I", len(body)) + body)
    except OSError:
        pass

def f(x):
    say(b"t3:s4:donei1:1i1:1")
    say(b"t2:s3:byeb16:" + bytes(16))
    os._exit(0)
