# @attack returns a generator that would run for ever
def f(x):
    while True:
        yield 2 * x
