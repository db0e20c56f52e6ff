"""How a value differs from the expected one, in the words of agent/difference.cpp, byte for byte. tests/models compares the two."""
from collections import Counter
from math import gcd

LONGEST_SHOWN = 60  # bytes of what is listed
LONGEST_NUMBER = 10 ** 15
LONGEST_RATIO = 99
LONGEST_SEQUENCE = 1000


def difference(expected, got):
    """One line for a failing test, without its label; '' where there is nothing to say that the two values do not."""
    if kind(expected) != kind(got):
        return f"expected is {kind(expected)}, got is {kind(got)}" if kind(expected) and kind(got) else ""
    if is_number(expected) and is_number(got):
        return "; ".join(of_numbers(expected, got))
    if isinstance(expected, str):
        return "; ".join(of_sequences(expected, got, "character")) if max(len(expected), len(got)) <= LONGEST_SEQUENCE else ""
    if isinstance(expected, (list, tuple)):
        return "; ".join(of_lists(list(expected), list(got)))
    return ""


def kind(value):
    return {bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list", tuple: "a tuple",
            type(None): "None"}.get(type(value), "")


def is_number(value):
    return type(value) is int and abs(value) <= LONGEST_NUMBER


def too_large(by):
    return f"{abs(by)} too {'large' if by > 0 else 'small'}"


def ratio(expected, got):
    """(got, expected) in lowest terms; None where one is zero, their signs differ, or the terms are large."""
    if not expected or not got or (expected < 0) != (got < 0):
        return None
    by = gcd(expected, got)
    pair = abs(got) // by, abs(expected) // by
    return pair if max(pair) <= LONGEST_RATIO else None


def of_numbers(expected, got):
    if got == expected:
        return []
    if got == -expected:
        return ["got has the wrong sign"]
    pair = ratio(expected, got) if gcd(expected, got) > 1 else None
    return ["got is " + too_large(got - expected)] + ([f"got to expected is {pair[0]} to {pair[1]}"] if pair else [])


def of_lists(expected, got):
    if max(len(expected), len(got)) > LONGEST_SEQUENCE:
        return []
    if not all(is_number(x) for x in expected + got) and not all(type(x) is str for x in expected + got):
        n = len(got) - len(expected)
        return [f"got has {count(n, 'element')} {'more' if n > 0 else 'fewer'}"] if n else []
    return of_sequences(expected, got, "element") + orders(expected, got) + repeats(expected, got)


def count(n, unit):
    return f"{abs(n)} {unit}{'' if abs(n) == 1 else 's'}"


def listed(values):
    text = repr(values)
    return ": " + text if len(text.encode()) <= LONGEST_SHOWN else ""


def without(long, short):
    """What `long` has besides all that `short` has, in its order; None where it lacks some of that."""
    left, out = Counter(short), []
    for x in long:
        if left[x]:
            left[x] -= 1
        else:
            out.append(x)
    return None if sum(left.values()) else "".join(out) if isinstance(long, str) else out


def where(long, short):
    n = len(short)
    return " at the end" if long[:n] == short else " at the front" if long[len(long) - n:] == short else ""


def of_sequences(expected, got, unit):
    """Of two texts, or two lists of numbers or of texts: the first of these that holds."""
    if got == expected:
        return []
    if all(isinstance(x, str) for x in [*expected, *got]) and len(expected) == len(got) and \
            all(lower(a) == lower(b) for a, b in zip(expected, got)):
        return ["only the case differs"] + case(expected, got)
    more, fewer = without(got, expected), without(expected, got)
    if more is not None and fewer is not None:
        return [f"got has the same {unit}s in another order"] + order_change(expected, got)
    if more is not None:
        return [f"got has {count(len(more), unit)} too many" + where(got, expected) + listed(more)]
    if fewer is not None:
        return [f"got lacks {count(len(fewer), unit)}" + where(expected, got) + listed(fewer)]
    if len(expected) != len(got):
        n = len(got) - len(expected)
        return [f"got has {count(n, unit)} {'more' if n > 0 else 'fewer'}"] + first_difference(expected, got, unit)
    return each(expected, got) or first_difference(expected, got, unit)


def each(expected, got):
    """What is true of all the places that differ."""
    pairs = {(a, b) for a, b in zip(expected, got) if a != b}
    if isinstance(expected, str):
        a, b = next(iter(pairs))
        return [f"got has {b!r} where expected has {a!r}"] if len(pairs) == 1 else []
    if len(expected) < 2 or not is_number(expected[0]):
        return []
    by = {b - a for a, b in zip(expected, got)}
    if len(by) == 1:
        return ["each element of got is " + too_large(by.pop())]
    if all(b == -a for a, b in zip(expected, got)):
        return ["each element of got has the wrong sign"]
    ratios = {ratio(a, b) for a, b in zip(expected, got) if a or b}
    pair = ratios.pop()
    return [f"each element of got to that of expected is {pair[0]} to {pair[1]}"] if pair and not ratios else []


def first_difference(expected, got, unit):
    i = next((i for i, (a, b) in enumerate(zip(expected, got)) if a != b), None)
    if i is None:
        return []
    text = f"{unit} {i} of got is {got[i]!r}, expected {expected[i]!r}"
    return [text] if len(text.encode()) <= 2 * LONGEST_SHOWN else []


def order_change(expected, got):
    if expected == got[::-1]:
        return ["got is reversed"]
    for k in range(1, min(4, len(got) - 1)):
        if expected == got[k:] + got[:k]:
            return [f"got must be rotated left by {k}"]
        if expected == got[-k:] + got[:-k]:
            return [f"got must be rotated right by {k}"]
    return []


def lower(text):
    """ASCII alone."""
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def is_small(c):
    return "a" <= c <= "z"


def is_capital(c):
    return "A" <= c <= "Z"


def case(expected, got):
    texts = [expected] if isinstance(expected, str) else expected
    letters = [c for text in texts for c in text if is_small(c) or is_capital(c)]
    if all(map(is_capital, letters)):
        return ["expected is in upper case"]
    if all(map(is_small, letters)):
        return ["expected is in lower case"]
    if all(is_title(text) for text in texts):
        return ["in expected each word begins with a capital letter"]
    if all(a != b for x, y in zip(expected, got) for a, b in zip(x, y) if is_small(a) or is_capital(a)):
        return ["each letter has the other case"]
    return []


def is_title(text):
    before = False
    for c in text:
        if is_capital(c) if before else is_small(c):
            return False
        before = is_small(c) or is_capital(c)
    return True


ORDERS = (("in ascending order", (int, str), lambda x: x, False), ("in descending order", (int, str), lambda x: x, True),
          ("ordered by absolute value", (int,), abs, False), ("ordered by length", (str,), len, False))


def has_order(values, key, down):
    keys = [key(x) for x in values]
    return len(set(keys)) > 1 and all(a >= b if down else a <= b for a, b in zip(keys, keys[1:]))


def orders(expected, got):
    """The first order that `expected` is in, where `got` is not."""
    for words, types, key, down in ORDERS:
        if expected and type(expected[0]) in types and has_order(expected, key, down):
            same = got and type(got[0]) in types and has_order(got, key, down)
            return [] if same else ["expected is " + words]
    return []


def repeats(expected, got):
    mine, theirs = len(set(got)) < len(got), len(set(expected)) < len(expected)
    return [] if mine == theirs else ["expected has repeats" if theirs else "expected has no repeats"]
