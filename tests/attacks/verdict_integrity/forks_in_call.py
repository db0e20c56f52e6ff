# @attack answers twice, from a child too
import os

def f(x):
    os.fork()
    return 0
