# @attack never answers
def f(x):
    while True:
        pass
