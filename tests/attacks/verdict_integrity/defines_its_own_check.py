# @attack brings a check() and tests of its own
import unittest

def check(candidate):
    assert True

def test_all():
    assert True

class Test(unittest.TestCase):
    def test_it(self):
        pass

def f(x):
    return 0
