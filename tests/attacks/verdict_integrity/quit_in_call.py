# @attack calls quit()
def f(x):
    quit()
