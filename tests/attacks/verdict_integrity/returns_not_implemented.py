# @attack returns NotImplemented
def f(x):
    return NotImplemented
