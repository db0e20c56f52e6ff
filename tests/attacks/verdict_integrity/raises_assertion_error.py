# @attack raises an assertion of its own, empty
def f(x):
    raise AssertionError()
