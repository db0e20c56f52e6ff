# @attack runs code of its own between the driver's steps
import gc
import os

gc.callbacks.append(lambda *_: None)
gc.set_threshold(1)

def f(x):
    return 0
