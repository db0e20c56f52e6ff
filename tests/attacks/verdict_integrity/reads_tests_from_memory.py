# @attack looks for the tests in its own process
# @in-process may forge
import gc
import re

def f(x):
    for o in gc.get_objects() + [s for o in gc.get_objects() if type(o) is dict for s in o.values()]:
        if type(o) is str:
            found = re.search(r"f\(%d\) *== *(-?\d+)" % x, o)
            if found:
                return int(found.group(1))
    return 0
