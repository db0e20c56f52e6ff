# The candidate's program: loaded, called, its objects kept under numbers.


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

    def plain_call(self, nonce, name, args, kwargs):
        """A call whose question came in the interpreter's own form: the answer to it, in that form where it can be."""
        if name not in self.namespace:
            raise NameError("the program does not define %s" % name)
        result = self.namespace[name](*args, **kwargs)
        body = marshalled(result)
        if body is not None:
            return MARSHALLED_VALUE + marshal.dumps(nonce, 2) + body + b"N"
        return b"t4:s5:value" + encode(nonce) + encode(result, self.objects) + b"N"

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
        try:
            if kind == "plain_call":
                return self.plain_call(nonce, *rest)
            n = encode(nonce)
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
