# Whether given tests can run apart from the program.


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
