# @attack returns a value nested so deeply that a parser would overflow
def f(x):
    out = []
    for _ in range(100_000):
        out = [out]
    return out
