# Assertions of given tests: counted, compared here, and told with both sides.


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
