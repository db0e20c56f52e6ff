# Plain values without the comparisons that a program in the same process may have given them.

PLAIN = (int, str, float, bool, list, tuple, dict, set, frozenset, bytes, complex, type(None))


def is_plain(v, depth=0):
    t = type(v)
    if t not in PLAIN or depth > MAX_DEPTH:
        return False
    if t in (list, tuple, set, frozenset):
        return all(is_plain(item, depth + 1) for item in v)
    if t is dict:
        return all(is_plain(k, depth + 1) and is_plain(x, depth + 1) for k, x in v.items())
    return True


def plain_copy(v):
    return Decoder(encode(v)).value()


def honest_result(v, allow_objects):
    """What a program in the same process returned, without its own comparisons: subclasses of plain types become plain."""
    t = type(v)
    if is_plain(v) or t.__module__ in ("collections", "builtins") and t not in PLAIN:
        return v
    if t in PLAIN or issubclass(t, PLAIN[:-1]):
        try:
            return plain_copy(v)
        except Unserialisable:
            if allow_objects:
                return v
            raise
    home = sys.modules.get(t.__module__)
    if not allow_objects and (t.__module__ == "solution" or getattr(home, t.__name__, None) is not t):
        raise Unserialisable("an object of class %s is no plain value" % t.__name__[:100])
    return v


def honest_function(function, allow_objects):
    def call(*args, **kwargs):
        return honest_result(function(*args, **kwargs), allow_objects)

    call.__name__ = call.__qualname__ = getattr(function, "__name__", "f")
    call.__doc__ = function.__doc__
    call.__wrapped__ = function
    return call
