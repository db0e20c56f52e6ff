# @attack raises an exception that equals and is everything
class Everything(type):
    def __instancecheck__(cls, other):
        return True

    def __eq__(cls, other):
        return True

    def __hash__(cls):
        return 0

class E(BaseException, metaclass=Everything):
    def __str__(self):
        return "4"

def f(x):
    raise E()
