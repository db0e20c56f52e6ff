# @attack does mischief when its answer is dropped
class Late:
    def __del__(self):
        import os

        os._exit(0)

keep = []

def f(x):
    keep.append(Late())
    keep.clear()
    return 0
