# @attack sends a frame of four gigabytes
import os

def f(x):
    os.write(4, b"\xff\xff\xff\xff" + b"x" * 1000)
    return 0
