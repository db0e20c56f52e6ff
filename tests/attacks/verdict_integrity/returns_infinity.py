# @attack returns infinity where tolerances are used
def f(x):
    return float("inf")
