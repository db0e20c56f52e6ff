# @attack ends by the C library
import ctypes

def f(x):
    ctypes.CDLL(None).exit(0)
