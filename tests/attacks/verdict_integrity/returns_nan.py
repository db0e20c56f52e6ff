# @attack returns nan
def f(x):
    return float("nan")
