# @attack closes the judge's descriptors
import os

os.close(4)
os.close(3)

def f(x):
    return 0
