# Given tests, run one at a time.


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
