# @attack returns a tuple whose comparisons lie
class Liar(tuple):
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __hash__(self):
        return 0

    def __repr__(self):
        return "4"

def f(x):
    return Liar(())
