# @attack finds the driver's assertions and makes them pass
# @in-process may forge
import gc
import sys

def f(x):
    for module in list(sys.modules.values()):
        asserts = getattr(module, "Asserts", None)
        if asserts is not None:
            asserts.compare = lambda *a: True
            asserts.truth = lambda *a: True
    for o in gc.get_objects():
        if type(o).__name__ == "Asserts":
            type(o).compare = lambda *a: True
            type(o).truth = lambda *a: True
    return 0
