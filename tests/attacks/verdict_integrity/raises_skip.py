# @attack raises unittest's skip
import unittest

def f(x):
    raise unittest.SkipTest("not today")
