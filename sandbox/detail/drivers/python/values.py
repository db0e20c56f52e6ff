# Values and their wire form (sandbox/value.h), both ways.


class Encoder:
    """Values to bytes. Content is read through the built-in types' own slots: what a subclass overrides is not asked."""

    def __init__(self, objects=None):
        self.objects = objects  # a table of handles, or None where only plain values may leave
        self.out = []
        self.size = 0

    def sized(self, tag, data):
        self.size += len(data)
        if self.size > MAX_FRAME // 2:
            raise Unserialisable("the value is too large")
        self.out.append(b"%s%d:" % (tag, len(data)))
        self.out.append(data)

    def value(self, v, depth=0):
        if depth > MAX_DEPTH:
            raise Unserialisable("the value is nested too deeply")
        t = type(v)
        if v is None:
            self.out.append(b"N")
        elif v is True or v is False:
            self.out.append(b"T" if v else b"F")
        elif t is int:
            if -9223372036854775808 <= v <= 9223372036854775807:
                self.sized(b"i", b"%d" % v)
            else:
                self.sized(b"i", (hex(v) if v.bit_length() > 8192 else str(v)).encode())
        elif t is str:
            self.sized(b"s", v.encode("utf-8", "surrogatepass"))
        elif t is float:
            self.sized(b"f", v.hex().encode())
        elif t is list:
            self.items(b"l", v, depth)
        elif t is tuple:
            self.items(b"t", v, depth)
        elif t is dict:
            self.mapping(v, depth)
        elif t is set:
            self.items(b"S", list(v), depth)
        elif t is frozenset:
            self.items(b"z", list(v), depth)
        elif t is bytes:
            self.sized(b"b", v)
        elif t is complex:
            self.out.append(b"c")
            self.sized(b"f", v.real.hex().encode())
            self.sized(b"f", v.imag.hex().encode())
        else:
            self.other(v, t, depth)

    def items(self, tag, items, depth):
        self.out.append(b"%s%d:" % (tag, len(items)))
        self.size += 4
        if self.size > MAX_FRAME // 2:
            raise Unserialisable("the value is too large")
        for item in items:
            self.value(item, depth + 1)

    def mapping(self, mapping, depth):
        pairs = list(dict.items(mapping))
        self.out.append(b"d%d:" % len(pairs))
        for key, item in pairs:
            self.value(key, depth + 1)
            self.value(item, depth + 1)

    def named(self, name, content, depth):
        self.sized(b"n", name.encode())
        self.value(content, depth + 1)

    def other(self, v, t, depth):
        name = t.__name__
        module = t.__module__
        if module == "collections" and name in ("Counter", "OrderedDict", "defaultdict"):
            return self.named(name, dict(dict.items(v)), depth)
        if t is bytearray:
            return self.named("bytearray", bytes(v), depth)
        if module == "collections" and name == "deque":
            return self.named("deque", list(v), depth)
        if t is range:
            return self.named("range", (v.start, v.stop, v.step), depth)
        if module == "decimal" and name == "Decimal":
            return self.sized(b"D", str(v).encode())
        if module == "fractions" and name == "Fraction":
            return self.named("Fraction", (v.numerator, v.denominator), depth)
        if module == "datetime" and name in ("date", "datetime", "time", "timedelta"):
            return self.named("datetime." + name, date_parts(v, name), depth)
        if module == "numpy":
            return self.value(v.item(), depth) if hasattr(v, "item") and not hasattr(v, "__len__") else self.named("ndarray", v.tolist(), depth)
        if name in ("dict_keys", "dict_values", "dict_items") and module == "builtins":
            return self.named(name, list(v), depth)
        if v is Ellipsis or v is NotImplemented:
            return self.named("constant", repr(v), depth)
        if t is type and getattr(builtins, v.__name__, None) is v:
            return self.named("type", v.__name__, depth)
        if issubclass(t, int):
            return self.named("subclass:" + name, int.__add__(v, 0), depth)
        if issubclass(t, float):
            return self.named("subclass:" + name, float.__pos__(v), depth)
        if issubclass(t, str):
            return self.named("subclass:" + name, str.__getitem__(v, slice(None)) if type(str.__getitem__(v, slice(None))) is str else str.__add__(v, ""), depth)
        if issubclass(t, list):
            return self.named("subclass:" + name, list.copy(v), depth)
        if issubclass(t, tuple):
            return self.named("subclass:" + name, tuple.__getitem__(v, slice(None)), depth)
        if issubclass(t, dict):
            return self.named("subclass:" + name, dict(dict.items(v)), depth)
        if issubclass(t, (set, frozenset)):
            return self.named("subclass:" + name, set(set.__iter__(v) if issubclass(t, set) else frozenset.__iter__(v)), depth)
        if hasattr(t, "__next__") and hasattr(t, "__iter__"):
            return self.named("iterator", self.drained(v), depth)
        if self.objects is None:
            raise Unserialisable("an object of class %s is no plain value" % name[:100])
        self.sized(b"o", name[:100].encode("utf-8", "replace"))
        self.out.append(b"%d:" % self.objects.handle(v))

    def drained(self, iterator):
        out = []
        for item in iterator:
            out.append(item)
            if len(out) > MAX_ITEMS:
                raise Unserialisable("an iterator without an end")
        return out


def date_parts(v, name):
    if name == "timedelta":
        return (v.days, v.seconds, v.microseconds)
    if getattr(v, "tzinfo", None) is not None:
        raise Unserialisable("a time with a time zone")
    if name == "date":
        return (v.year, v.month, v.day)
    if name == "time":
        return (v.hour, v.minute, v.second, v.microsecond)
    return (v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond)


def encode(v, objects=None):
    encoder = Encoder(objects)
    encoder.value(v)
    return b"".join(encoder.out)


ATOMS = frozenset((type(None), bool, int, float, complex, str, bytes))
NESTS = frozenset((list, tuple, dict))
PLAIN_KINDS = ATOMS | NESTS
MARSHALLED_VALUE = MARSHALLED + b"(\x04\x00\x00\x00" + marshal.dumps("value", 2)


def is_marshallable(v):
    """Whether the module marshal, which knows classes by no name and does not see where a value contains itself, keeps a value as it
    is. Level by level, without running Python for each part."""
    level, count = [v], 1
    for _ in range(MAX_DEPTH):
        kinds = set(map(type, level))
        if kinds <= ATOMS:
            return True
        if not kinds <= PLAIN_KINDS:
            return False
        nests = [x for x in level if type(x) in NESTS]
        dicts = [x for x in nests if type(x) is dict]
        level = list(chain(chain.from_iterable(nests), chain.from_iterable(map(dict.values, dicts))))
        count += len(level)
        if count > MAX_ITEMS:
            return False
    return False


def marshalled(v):
    """A value in the interpreter's own form, or None where that has not all of it or is too long."""
    if type(v) not in ATOMS and not is_marshallable(v):
        return None
    body = marshal.dumps(v, 2)
    return body if len(body) <= MAX_FRAME // 2 else None


class Decoder:
    def __init__(self, data, objects=None):
        self.data = data
        self.at = 0
        self.objects = objects

    def length(self):
        end = self.data.index(b":", self.at)
        n = int(self.data[self.at : end])
        self.at = end + 1
        return n

    def sized(self):
        n = self.length()
        out = self.data[self.at : self.at + n]
        self.at += n
        return out

    def value(self):
        tag = self.data[self.at]
        self.at += 1
        if tag == 105:  # i
            text = self.sized()
            return int(text, 16) if b"x" in text else int(text)
        if tag == 115:  # s
            return self.sized().decode("utf-8", "surrogatepass")
        if tag == 102:  # f
            return self.real()
        if tag == 108:  # l
            return [self.value() for _ in range(self.length())]
        if tag == 116:  # t
            return tuple([self.value() for _ in range(self.length())])
        if tag == 100:  # d
            out = {}
            for _ in range(self.length()):
                key = self.value()
                out[key] = self.value()
            return out
        if tag == 78 or tag == 85:  # N U
            return None
        if tag == 84:
            return True
        if tag == 70:
            return False
        if tag == 83:  # S
            return built_set([self.value() for _ in range(self.length())])
        if tag == 122:  # z
            return frozenset([self.value() for _ in range(self.length())])
        if tag == 98:  # b
            return self.sized()
        if tag == 99:  # c
            self.at += 1
            real = self.real()
            self.at += 1
            return complex(real, self.real())
        if tag == 68:  # D
            from decimal import Decimal

            return Decimal(self.sized().decode())
        if tag == 110:  # n
            name = self.sized().decode("utf-8", "replace")
            return rebuilt(name, self.value())
        if tag == 111:  # o
            name = self.sized().decode("utf-8", "replace")
            return self.objects.resolve(name, self.length())
        raise ValueError("unknown tag %r" % tag)

    def real(self):
        text = self.sized().decode()
        return float.fromhex(text) if "x" in text else float(text)


def built_set(items):
    """A set whose order of iteration is that of a literal with these members, which CPython makes from a constant."""
    if len(items) < 3:
        return set(items)
    out = set()
    out.update(frozenset(tuple(frozenset(items))))
    return out


def rebuilt(name, content):
    import collections

    if name == "Counter":
        return collections.Counter(content)
    if name == "OrderedDict":
        return collections.OrderedDict(content)
    if name == "deque":
        return collections.deque(content)
    if name == "range":
        return range(*content)
    if name == "iterator":
        return iter(content)
    if name == "dict_keys":
        return dict.fromkeys(content).keys()
    if name == "dict_values":
        return dict(enumerate(content)).values()
    if name == "dict_items":
        return dict(content).items()
    if name == "bytearray":
        return bytearray(content)
    if name == "Fraction":
        from fractions import Fraction

        return Fraction(*content)
    if name in ("datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta"):
        import datetime

        return getattr(datetime, name[9:])(*content)
    if name == "constant":
        return {"Ellipsis": ...}.get(content, NotImplemented)
    if name == "type":
        found = getattr(builtins, content, None)
        return found if isinstance(found, type) else object
    return content  # defaultdict, subclass:…, ndarray: the plain content
