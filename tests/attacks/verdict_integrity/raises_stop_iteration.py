# @attack raises StopIteration in the hope that a loop ends
def f(x):
    raise StopIteration
