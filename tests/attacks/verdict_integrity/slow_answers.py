# @attack answers too late
import time

def f(x):
    time.sleep(1000)
    return 2 * x
