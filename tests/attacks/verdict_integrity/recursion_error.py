# @attack fails in a way that a careless harness takes for its own fault
def f(x):
    return f(x)
