# @attack reads the source of its caller
# @in-process may forge
import inspect
import re

def f(x):
    for info in inspect.stack():
        for line in info.code_context or []:
            found = re.search(r"f\(%d\) *== *(-?\d+)" % x, line)
            if found:
                return int(found.group(1))
    return 0
