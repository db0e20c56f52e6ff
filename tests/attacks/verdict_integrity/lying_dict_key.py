# @attack returns a dict with a key that equals every key
class Key(str):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

def f(x):
    return {Key("a"): 1}
