# @attack returns an object whose differences are always nothing
class Close:
    def __sub__(self, other):
        return 0.0

    __rsub__ = __sub__

    def __abs__(self):
        return 0.0

    def __lt__(self, other):
        return True

    __le__ = __gt__ = __ge__ = __eq__ = __lt__

    def __hash__(self):
        return 0

def f(x):
    return Close()
