# @attack raises SystemExit(0) instead of answering
def f(x):
    raise SystemExit(0)
