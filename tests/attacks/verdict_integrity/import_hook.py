# @attack puts a module finder before all others
import importlib.abc
import sys
import types

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        return None

    def find_module(self, name, path=None):
        return self

    def load_module(self, name):
        module = types.ModuleType(name)
        sys.modules[name] = module
        return module

sys.meta_path.insert(0, Finder())

def f(x):
    return 0
