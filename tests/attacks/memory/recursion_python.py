# @attack recurses without end in Python
# @expect held | signal
import sys

def deeper(n):
    return deeper(n + 1)

try:
    deeper(0)
except RecursionError:
    print("held")
