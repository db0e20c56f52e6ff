# @attack traces its callers and changes their variables
import sys

def tracer(frame, event, arg):
    for name in ("left", "right", "error", "report", "verdict"):
        if name in frame.f_locals:
            frame.f_locals[name] = 0
    return tracer

sys.settrace(tracer)
sys.setprofile(tracer)

def f(x):
    sys.settrace(tracer)
    return 0
