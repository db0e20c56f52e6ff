# @attack never answers
# @slow
def f(x):
    while True:
        pass
