# @attack gives a wrong answer, honestly
def f(x):
    return 3 * x
