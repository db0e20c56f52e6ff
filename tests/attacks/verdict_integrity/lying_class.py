# @attack returns an object that claims to be an int
class Liar:
    __class__ = int

    def __eq__(self, other):
        return True

    def __index__(self):
        return 4

    def __int__(self):
        return 4

def f(x):
    return Liar()
