# @attack returns a function
def f(x):
    return lambda *a: 2 * x
