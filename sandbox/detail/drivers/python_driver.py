"""Runs inside the jail: answers the judge's questions about a candidate, or runs given tests against one.

It speaks on two pipes (file descriptors 3 and 4), never on stdin or stdout. A frame is a length (4 bytes, little endian) and
one value in the wire form of sandbox/value.h. The driver shares its process with the candidate and is not trusted: a
candidate that takes it over can return wrong values, and nothing more, because the judge compares outside.
"""

import ast
import builtins
import os
import sys
import types

QUESTIONS, ANSWERS = 3, 4
MAX_FRAME = 64 << 20
MAX_DEPTH = 190
MAX_ITEMS = 1_000_000
MAX_TEXT = 2000
MAX_FRAMES = 30


class Unserialisable(Exception):
    pass


class ProtocolEnd(BaseException):
    pass


# ---------------------------------------------------------------------------------------------------------------- values


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


# --------------------------------------------------------------------------------------------------------------- channel


class Channel:
    def __init__(self):
        self.read, self.write = os.read, os.write
        self.ahead = bytearray()  # questions that came with the one before

    def exactly(self, n):
        while len(self.ahead) < n:
            part = self.read(QUESTIONS, min(max(n - len(self.ahead), 1 << 16), 1 << 20))
            if not part:
                raise ProtocolEnd()
            self.ahead += part
        with memoryview(self.ahead) as whole:
            data = bytes(whole[:n])
        del self.ahead[:n]
        return data

    def receive(self, objects=None):
        n = int.from_bytes(self.exactly(4), "little")
        if n > MAX_FRAME:
            raise ProtocolEnd()
        return Decoder(self.exactly(n), objects).value()

    def send(self, message, objects=None):
        self.send_bytes(encode(message, objects))

    def send_bytes(self, body):
        data = len(body).to_bytes(4, "little") + body
        at = 0
        while at < len(data):
            at += self.write(ANSWERS, data[at : at + (1 << 20)])


def capped(text, limit=MAX_TEXT):
    return text if len(text) <= limit else text[:limit] + "… (%d more characters)" % (len(text) - limit)


def text_of(function, v, limit=MAX_TEXT):
    try:
        return capped(str(function(v)), limit)
    except BaseException as error:
        return "<%s failed with %s>" % (function.__name__, type(error).__name__)


def frames_of(traceback, files):
    """The frames in the candidate's (and the tests') text, outermost first: line, function, source line."""
    out = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        lines = files.get(code.co_filename)
        if lines is not None:
            line = traceback.tb_lineno
            source = lines[line - 1].strip()[:200] if 0 < line <= len(lines) else ""
            out.append((code.co_filename, line, code.co_name[:100], source))
        traceback = traceback.tb_next
    if len(out) > MAX_FRAMES:
        out = out[: MAX_FRAMES // 2] + out[-MAX_FRAMES // 2 :]
    return out


def exception_record(error, files):
    t = type(error)
    bases = [c.__name__ for c in t.__mro__ if getattr(builtins, c.__name__, None) is c]
    if isinstance(error, SyntaxError):
        message = text_of(str, error)
        frames = [(str(error.filename), error.lineno or 0, "", (error.text or "").strip()[:200])]
    else:
        message = text_of(str, error)
        frames = frames_of(error.__traceback__, files)
    return (t.__name__[:100], bases, message, frames)


# ------------------------------------------------------------------------------------------------------------- candidate


class Objects:
    """Objects of the candidate's that stay in its jail and are known outside by a number."""

    def __init__(self):
        self.table = []
        self.ids = {}

    def handle(self, v):
        number = self.ids.get(id(v))
        if number is None:
            number = len(self.table)
            if number > MAX_ITEMS:
                raise Unserialisable("too many objects")
            self.table.append(v)
            self.ids[id(v)] = number
        return number

    def resolve(self, _name, number):
        return self.table[number]


class Candidate:
    def __init__(self, channel, files):
        self.channel = channel
        self.files = files
        self.objects = None
        self.namespace = {}

    def load(self, source, file_name, module_name, allow_objects):
        self.objects = Objects() if allow_objects else None
        self.namespace = load_program(source, file_name, module_name, self.files)

    def kind(self, name):
        if name not in self.namespace:
            return ("missing", None)
        v = self.namespace[name]
        if isinstance(v, type):
            return ("class", None)
        if callable(v):
            return ("function", None)
        try:
            encode(v)
            return ("value", v)
        except Unserialisable:
            return ("object" if self.objects is not None else "missing", v if self.objects is not None else None)

    def call(self, name, args, kwargs, want_arguments):
        if name not in self.namespace:
            raise NameError("the program does not define %s" % name)
        before = encode(args, self.objects) if want_arguments else None
        result = self.namespace[name](*args, **kwargs)
        body = encode(result, self.objects)
        changed = b"N"
        if want_arguments and before != b"t0:":
            after = encode(args, self.objects)
            changed = after if after != before else b"N"
        return body, changed

    def operate(self, target, operation, args, kwargs):
        """An operation of the tests on an object of the candidate's. Never hands it a value that the tests compare with."""
        if operation == "getattr":
            result = getattr(target, args[0])
        elif operation == "setattr":
            result = setattr(target, args[0], args[1])
        elif operation == "call":
            result = target(*args, **kwargs)
        elif operation == "iter":
            result = Encoder(self.objects).drained(iter(target))
        elif operation == "getitem":
            result = target[args[0]]
        elif operation == "setitem":
            target[args[0]] = args[1]
            result = None
        elif operation == "contains":
            result = args[0] in target
        elif operation in ("len", "str", "repr", "bool", "int", "float", "hash", "abs"):
            result = getattr(builtins, operation)(target)
        elif operation == "eq":
            result = bool(target == args[0])
        elif operation == "lt":
            result = bool(target < args[0])
        elif operation == "isinstance":
            result = isinstance(target, self.namespace.get(args[0], ()))
        elif operation in ("add", "sub", "mul", "truediv", "neg"):
            import operator

            result = getattr(operator, operation)(target, *args)
        else:
            raise TypeError("no operation %s" % operation)
        return encode(result, self.objects), b"N"

    def answer(self, question):
        nonce, kind, rest = question[1], question[0], question[2:]
        self.channel.send_bytes(self.reply(kind, nonce, rest))

    def reply(self, kind, nonce, rest):
        n = encode(nonce)
        try:
            if kind == "load":
                self.load(*rest)
                return b"t4:s5:value" + n + b"N" + b"N"
            if kind == "kind":
                return b"t4:s5:value" + n + encode(self.kind(*rest), self.objects) + b"N"
            if kind == "call":
                body, changed = self.call(*rest)
            else:
                body, changed = self.operate(*rest)
            return b"t4:s5:value" + n + body + changed
        except ProtocolEnd:
            raise
        except Unserialisable as error:
            record = ("Unserialisable", [], str(error), [])
        except BaseException as error:
            record = exception_record(error, self.files)
        return encode(("raise", nonce, record, None))


def load_program(source, file_name, module_name, files):
    module = types.ModuleType(module_name)
    module.__file__ = file_name
    sys.modules[module_name] = module
    files[file_name] = source.splitlines()
    exec(compile(source, file_name, "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


# ----------------------------------------------------------------------------------------------------------------- tests

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


class AssertDetail:
    __slots__ = ("source", "left", "right", "line")


class Asserts:
    """What the instrumented `assert` statements call."""

    def __init__(self, in_process):
        self.count = 0
        self.in_process = in_process

    def compare(self, op, left, right):
        self.count += 1
        if op in ("==", "!=") and self.in_process:
            left, right = self.honest(left, right)
        if op == "==":
            return left == right
        if op == "!=":
            return left != right
        if op == "is":
            return left is right
        if op == "is not":
            return left is not right
        if op == "<":
            return left < right
        if op == "<=":
            return left <= right
        if op == ">":
            return left > right
        if op == ">=":
            return left >= right
        return left in right if op == "in" else left not in right

    def honest(self, left, right):
        """Where one side is plain, the other is reduced to its plain content: no __eq__ of the candidate's is asked."""
        try:
            if is_plain(right) and not is_plain(left):
                return plain_copy(left), right
            if is_plain(left) and not is_plain(right):
                return left, plain_copy(right)
        except Unserialisable:
            return object(), None
        return left, right

    def truth(self, v):
        self.count += 1
        return v

    def failure(self, source, line, message, *sides):
        error = AssertionError(capped(str(message)) if message is not None else source)
        detail = AssertDetail()
        detail.source, detail.line = source, line
        detail.left = text_of(repr, sides[0]) if sides else ""
        detail.right = text_of(repr, sides[1]) if len(sides) > 1 else ""
        error.__fixpoint__ = detail
        return error


OPERATORS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


class Instrument(ast.NodeTransformer):
    """assert a == b  becomes  L = a; R = b; if not compare('==', L, R): raise failure(…)."""

    def visit_Assert(self, node):
        self.generic_visit(node)
        source = ast.Constant(capped(ast.unparse(node), 500))
        line = ast.Constant(node.lineno)
        message = node.msg or ast.Constant(None)
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            sides = ["__fixpoint_left__", "__fixpoint_right__"]
            values = [test.left, test.comparators[0]]
            verdict = self.hook("compare", [ast.Constant(OPERATORS[type(test.ops[0])])] + [self.load(s) for s in sides])
        else:
            sides = ["__fixpoint_left__"]
            values = [test]
            verdict = self.hook("truth", [self.load(sides[0])])
        out = [ast.Assign(targets=[ast.Name(s, ast.Store())], value=v) for s, v in zip(sides, values)]
        failure = self.hook("failure", [source, line, message] + [self.load(s) for s in sides])
        out.append(ast.If(test=ast.UnaryOp(ast.Not(), verdict), body=[ast.Raise(exc=failure, cause=None)], orelse=[]))
        for statement in out:
            ast.copy_location(statement, node)
            ast.fix_missing_locations(statement)
        return out

    @staticmethod
    def load(name):
        return ast.Name(name, ast.Load())

    def hook(self, name, args):
        return ast.Call(ast.Attribute(self.load("__fixpoint_asserts__"), name, ast.Load()), args, [])


def free_names(tree):
    """Names that the tests read and neither bind at their top level nor take from builtins."""
    bound, read = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            bound.add(node.name)
            for argument in ast.walk(node.args) if hasattr(node, "args") else ():
                if isinstance(argument, ast.arg):
                    bound.add(argument.arg)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return read - bound


class Separation:
    """Decides from the tests alone whether they can run apart from the candidate, and says why where they cannot."""

    INSIDE = {"unittest.mock", "mock", "inspect", "importlib", "pickle", "gc", "ctypes"}

    def __init__(self, tree, entry_point, module_name):
        self.entry_point = entry_point
        self.module_name = module_name
        self.imports_module = False
        self.names = free_names(tree)
        if entry_point:
            self.names.add(entry_point)
        self.reason = ""
        for node in ast.walk(tree):
            self.look(node)

    def refuse(self, reason):
        self.reason = self.reason or reason

    def look(self, node):
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imported(alias.name)
        elif isinstance(node, ast.ImportFrom):
            if node.module == self.module_name and any(alias.name == "*" for alias in node.names):
                self.refuse("the tests import everything from the program")
            for alias in node.names:
                self.imported("%s.%s" % (node.module, alias.name))
            if node.module == self.module_name:
                self.names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == self.entry_point:
            for argument in list(node.args) + [k.value for k in node.keywords]:
                if isinstance(argument, ast.Lambda):
                    self.refuse("the tests pass a function to the program")
        elif isinstance(node, ast.Attribute) and node.attr in ("__globals__", "__code__", "__dict__"):
            self.refuse("the tests look inside the program")

    def imported(self, name):
        if name.split(".")[0] == self.module_name:
            self.imports_module = True
        if name in self.INSIDE or name.split(".")[0] in self.INSIDE or name == "unittest.mock.patch":
            self.refuse("the tests use %s" % name)


class Remote:
    """The tests' side of the wall: asks the judge, who asks the candidate's jail."""

    def __init__(self, channel):
        self.channel = channel

    def ask(self, *question):
        self.channel.send(("ask",) + question, self)
        answer = self.channel.receive(self)
        if answer[0] == "value":
            return answer[1], answer[2]
        raise remote_error(answer[1])

    def handle(self, v):
        number = v.__dict__.get("_fixpoint_handle") if isinstance(v, RemoteObject) else None
        if number is None:
            raise Unserialisable("the tests pass %s to the program" % type(v).__name__)
        return number

    def resolve(self, name, number):
        return RemoteObject(self, name, number)

    def call(self, name, args, kwargs):
        result, changed = self.ask("call", name, args, kwargs, True)
        if changed is not None:
            for mine, theirs in zip(args, changed):
                update_in_place(mine, theirs)
        return result


def update_in_place(mine, theirs):
    """A call that changed a list, dict or set that it was given changes the tests' one too."""
    if type(mine) is not type(theirs):
        return
    if type(mine) is list:
        for old, new in zip(mine, theirs):
            update_in_place(old, new)
        if len(mine) != len(theirs) or mine != theirs:
            mine[:] = theirs
    elif type(mine) is dict or type(mine) is set:
        if mine != theirs:
            mine.clear()
            mine.update(theirs)


def remote_error(record):
    name, bases, message, _frames = record
    known = [getattr(builtins, b, None) for b in bases]
    base = next((b for b in known if isinstance(b, type) and issubclass(b, Exception)), Exception)
    if name == base.__name__ and base is not KeyError:
        made = None
        try:
            made = base(message)
        except Exception:
            base = Exception
    else:
        made = None
    if made is None:
        made = type(str(name), (plain_base(base),), {"__str__": lambda self: message})(message)
    made.__fixpoint_record__ = record
    return made


def plain_base(base):
    """Some exceptions cannot be made from a text alone; their base can."""
    return ValueError if issubclass(base, UnicodeError) else base


class RemoteFunction:
    def __init__(self, remote, name):
        self._remote, self.__name__, self.__qualname__ = remote, name, name
        self.__doc__ = None

    def __call__(self, *args, **kwargs):
        return self._remote.call(self.__name__, args, kwargs)


class RemoteClass(type):
    """Stands for a class of the candidate's: calling it makes an object over there."""

    def __call__(cls, *args, **kwargs):
        return cls._remote.call(cls.__name__, args, kwargs)

    def __instancecheck__(cls, v):
        return isinstance(v, RemoteObject) and cls._remote.ask("operate", v, "isinstance", (cls.__name__,), {})[0]


class RemoteObject:
    """An opaque object of the candidate's. It equals only other such objects: a plain value never goes to its __eq__."""

    def __init__(self, remote, class_name, number):
        self.__dict__.update(_fixpoint_remote=remote, _fixpoint_class=class_name, _fixpoint_handle=number)

    def _operate(self, operation, *args, **kwargs):
        return self.__dict__["_fixpoint_remote"].ask("operate", self, operation, args, kwargs)[0]

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self._operate("getattr", name)

    def __setattr__(self, name, v):
        self._operate("setattr", name, v)

    def __call__(self, *args, **kwargs):
        return self._operate("call", *args, **kwargs)

    def __iter__(self):
        return iter(self._operate("iter"))

    def __len__(self):
        return self._operate("len")

    def __bool__(self):
        return self._operate("bool") is True

    def __getitem__(self, key):
        return self._operate("getitem", key)

    def __setitem__(self, key, v):
        return self._operate("setitem", key, v)

    def __contains__(self, v):
        return isinstance(v, RemoteObject) and self._operate("contains", v) is True

    def __str__(self):
        return plain_text(self._operate("str"))

    def __repr__(self):
        return plain_text(self._operate("repr"))

    def __hash__(self):
        return int(self._operate("hash"))

    def __int__(self):
        return int(self._operate("int"))

    def __float__(self):
        return float(self._operate("float"))

    def __eq__(self, other):
        return isinstance(other, RemoteObject) and self._operate("eq", other) is True

    def __ne__(self, other):
        return not self == other

    def __lt__(self, other):
        return isinstance(other, RemoteObject) and self._operate("lt", other) is True

    def _with(self, operation, other):
        if not isinstance(other, RemoteObject):
            raise TypeError("an object of the program's and a plain value do not mix")
        return self._operate(operation, other)

    def __add__(self, other):
        return self._with("add", other)

    def __sub__(self, other):
        return self._with("sub", other)

    def __mul__(self, other):
        return self._with("mul", other)


def plain_text(v):
    return v if type(v) is str else "<no text>"


class Stub:
    """A program that is certainly wrong, for tests that would accept anything."""

    def __init__(self, *_args, **_kwargs):
        pass

    def __call__(self, *_args, **_kwargs):
        return Stub()

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Stub()

    def __bool__(self):
        return False

    def __eq__(self, other):
        return False

    def __ne__(self, other):
        return False

    __hash__ = None


class Snapshot:
    """What a candidate in the same process may have patched, put back before the tests run."""

    def __init__(self):
        import unittest
        import unittest.case

        self.builtins = dict(builtins.__dict__)
        self.case = unittest.case
        self.case_class = dict(vars(unittest.case.TestCase))
        self.modules = {name: sys.modules[name] for name in ("builtins", "unittest", "unittest.case", "sys", "os", "ast")}
        self.names = {name: dict(vars(module)) for name, module in self.modules.items() if name not in ("sys", "builtins")}

    def restore(self):
        import signal

        sys.settrace(None)
        sys.setprofile(None)
        for name in list(builtins.__dict__):
            if name not in self.builtins and name != "_":
                del builtins.__dict__[name]
        builtins.__dict__.update(self.builtins)
        for name, module in self.modules.items():
            sys.modules[name] = module
        for name, content in self.names.items():
            vars(self.modules[name]).update(content)
        test_case = self.case.TestCase
        for name in list(vars(test_case)):
            if name not in self.case_class:
                delattr(test_case, name)
        for name, v in self.case_class.items():
            if vars(test_case).get(name) is not v and name not in ("__dict__", "__weakref__"):
                setattr(test_case, name, v)
        for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGUSR1, signal.SIGPROF, signal.SIGVTALRM):
            signal.signal(number, signal.SIG_DFL)


class Tests:
    def __init__(self, channel, files):
        self.channel = channel
        self.files = files
        self.index = 0
        self.not_passed = 0

    def begin(self, text, file_name, entry_point, module_name, mode):
        """mode: apart (a candidate in another jail), inside (the candidate here), stub (a wrong one), plan (only say)."""
        self.mode, self.entry_point, self.module_name = mode, entry_point, module_name
        self.text, self.file_name = text, file_name
        self.tree = ast.parse(text, file_name)
        self.separation = Separation(self.tree, entry_point, module_name)
        self.asserts = Asserts(in_process=mode == "inside")
        self.defined = [n for n in self.tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
        self.files[file_name] = text.splitlines()

    def names_wanted(self):
        """Names that the tests use and Python does not have: the candidate's. With the entry point alone no objects leave."""
        return sorted(n for n in self.separation.names if not hasattr(builtins, n) or n == self.entry_point)

    def uses_objects(self):
        """Whether the tests use more of the program than one function. A lone name in lower case is taken for a function."""
        names = self.names_wanted()
        return not (len(names) == 1 and (names[0] == self.entry_point or names[0][:1].islower()))

    def connect(self, namespace):
        if self.mode == "inside":
            self.guard(namespace)
            return namespace
        remote = Remote(self.channel)
        names = {"__name__": "tests", "__builtins__": builtins}
        for name in self.names_wanted():
            if self.mode == "stub":
                names[name] = Stub()
                continue
            kind, v = remote.ask("kind", name)[0]
            if kind == "function":
                names[name] = RemoteFunction(remote, name)
            elif kind == "class":
                names[name] = RemoteClass(name, (), {"_remote": remote})
            elif kind in ("value", "object"):
                names[name] = v
        if self.separation.imports_module:
            module = types.ModuleType(self.module_name)
            module.__dict__.update({n: v for n, v in names.items() if not n.startswith("__")})
            sys.modules[self.module_name] = module
        return names

    def guard(self, namespace):
        function = namespace.get(self.entry_point)
        if type(function) is types.FunctionType:
            sys.setrecursionlimit(sys.getrecursionlimit() * 2)  # each level of a recursive program is two frames now
            namespace[self.entry_point] = honest_function(function, self.uses_objects())

    def run(self, namespace):
        names = self.connect(namespace)
        names["__fixpoint_asserts__"] = self.asserts
        tree = Instrument().visit(self.tree)
        body = tree.body
        for statement in split_statements(body):
            is_test = statement[-1].__class__ is ast.If and len(statement) > 1
            code = compile(ast.Module(statement, []), self.file_name, "exec", dont_inherit=True)
            if is_test:
                self.unit(assert_source(statement), lambda: exec(code, names))
            else:
                exec(code, names)
        self.functions(names)

    def functions(self, names):
        import unittest

        defined = {node.name for node in self.defined}
        if self.entry_point and "check" in defined:
            before = self.asserts.count
            self.unit("check(%s)" % self.entry_point, lambda: names["check"](names[self.entry_point]))
            if self.asserts.count == before and self.not_passed == 0:
                self.problem("check() made no assertion")
        for name in dict.fromkeys(node.name for node in self.defined):
            v = names.get(name)
            if isinstance(v, type) and issubclass(v, unittest.TestCase):
                self.cases(v)
            elif name.startswith("test") and isinstance(v, types.FunctionType):
                if not called_at_top(self.tree, name) and v.__code__.co_argcount == 0:
                    self.unit(name + "()", v)

    def cases(self, test_class):
        import unittest

        for name in unittest.TestLoader().getTestCaseNames(test_class):
            self.unit("%s.%s" % (test_class.__name__, name), lambda: self.case(test_class(name)))

    def case(self, case):
        import unittest

        result = unittest.TestResult()
        errors = []
        add = lambda test, error: errors.append(error[1])
        result.addError = result.addFailure = add
        result.addSubTest = lambda test, sub, error: errors.append(error[1]) if error else None
        case.run(result)
        self.asserts.count += 1
        if errors:
            raise errors[0]
        if result.testsRun != 1 or result.skipped or result.unexpectedSuccesses:
            raise RuntimeError("the test was skipped")

    def unit(self, name, function):
        """One test, between a nonce from the judge and an answer that carries it."""
        self.channel.send(("unit", self.index, capped(name, 500)))
        nonce = self.channel.receive()[1]
        error = None
        try:
            function()
        except ProtocolEnd:
            raise
        except BaseException as e:
            error = e
        if error is None:
            report = ("passed", "", "", "", None)
        else:
            self.not_passed += 1
            detail = getattr(error, "__fixpoint__", None)
            record = getattr(error, "__fixpoint_record__", None)
            if detail is not None:
                report = ("failed", capped(str(error)), detail.left, detail.right, None)
            elif record is not None:
                report = ("raised", text_of(str, error), "", "", record)
            elif isinstance(error, AssertionError):
                report = ("failed", text_of(str, error), "", "", exception_record(error, self.files))
            else:
                report = ("raised", text_of(str, error), "", "", exception_record(error, self.files))
        self.channel.send(("report", nonce, self.index) + report)
        self.index += 1

    def problem(self, what):
        self.channel.send(("problem", what))


def split_statements(body):
    """The top level one statement at a time; the three that stand for an assert stay together."""
    group = []
    for node in body:
        group.append(node)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.startswith("__fixpoint_"):
            continue
        yield group
        group = []


def assert_source(statement):
    return statement[-1].body[0].exc.args[0].value


def called_at_top(tree, name):
    return any(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id == name
        for node in tree.body
    )


def serve_tests(channel, files, question):
    _, text, file_name, entry_point, module_name, mode, source = question
    tests = Tests(channel, files)
    try:
        snapshot = Snapshot() if mode == "inside" else None
        namespace = {}
        if mode == "inside":
            try:
                namespace = load_program(source, "solution.py", module_name, files)
            except BaseException as error:
                channel.send(("unloadable", exception_record(error, files)))
                return
            snapshot.restore()
            # Only now does the tests' text come in: the program's own top level never saw it.
            channel.send(("loaded",))
            text = channel.receive()[1]
        tests.begin(text, file_name, entry_point, module_name, mode)
        separation = tests.separation
        channel.send(("plan", separation.reason, tests.uses_objects()))
        if channel.receive()[0] != "go":
            return
        tests.run(namespace)
        channel.send(("done", tests.index, tests.asserts.count))
    except ProtocolEnd:
        raise
    except BaseException as error:
        record = getattr(error, "__fixpoint_record__", None) or exception_record(error, files)
        channel.send(("broken", record))


def serve(channel):
    files = {}
    candidate = Candidate(channel, files)
    sys.set_int_max_str_digits(0)
    while True:
        question = channel.receive(candidate.objects)
        if question[0] == "end":
            channel.send(("bye", question[1]))
            return
        if question[0] == "tests":
            serve_tests(channel, files, question)
        else:
            candidate.answer(question)


def main():
    code = 0
    try:
        serve(Channel())
    except ProtocolEnd:
        code = 3
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        pass
    os._exit(code)
