"""Runs the family's own programs in this process, fast: tests, failures and traces as the service would show them.

Only for programs that this generator or its model wrote, under an alarm. The service runs programs in its sandbox.
"""
import builtins
import contextlib
import signal
import sys

FILE = "<program>"
ALLOWED = {name: getattr(builtins, name) for name in
           "abs all any bin bool chr dict enumerate filter float int isinstance iter len list map max min next ord pow "
           "range reversed round set sorted str sum tuple zip print divmod repr hex format frozenset Exception ValueError "
           "IndexError KeyError TypeError ZeroDivisionError".split()}
LONGEST_RANGE = 1_000_000


def bounded_range(*bounds):
    """A list of a billion numbers is made in one step, which no alarm interrupts."""
    numbers = range(*bounds)
    if len(numbers) > LONGEST_RANGE:
        raise MemoryError("range")
    return numbers


ALLOWED["range"] = bounded_range
MAX_FAILURES = 3          # failing tests that are described
TRACE_HEAD, TRACE_TAIL = 12, 12
VALUE_BYTES = 120
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(2000)


class Timeout(BaseException):
    pass


def _ring(*_):
    raise Timeout()


@contextlib.contextmanager
def alarm(seconds):
    signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def compile_function(code, function):
    names = {"__builtins__": ALLOWED}
    exec(compile(code, FILE, "exec"), names)
    return names[function]


def outcome(function, argument):
    """The value, or the exception that it raised."""
    try:
        return function(eval(repr(argument)))
    except (Timeout, MemoryError):
        raise
    except Exception as error:
        return error


def short(value):
    try:
        text = repr(value)
    except Exception:
        return "<a value that cannot be shown>"
    return text if len(text) <= VALUE_BYTES else text[:VALUE_BYTES] + "..."


def error_line(error):
    line, tb = None, error.__traceback__
    while tb:
        if tb.tb_frame.f_code.co_filename == FILE:
            line = tb.tb_lineno
        tb = tb.tb_next
    return line


def error_text(error):
    line = error_line(error)
    return f"{type(error).__name__}: {str(error)[:200]}" + (f" (line {line})" if line else "")


def trace_of(code, function, argument):
    """One text a line that ran, with what it changed: `xs = xs[:2]  # xs = [1, 5]`."""
    source = code.split("\n")
    lines, pending, seen = [], None, {}

    def changes(frame):
        out = []
        for name, value in frame.f_locals.items():
            text = short(value)
            if name in seen and seen[name] == text or callable(value):
                continue
            seen[name] = text
            out.append(f"{name} = {text}")
        return ", ".join(out)

    def show(line, effect):
        lines.append(source[line - 1].strip() + ("  # " + effect if effect else ""))

    def local(frame, event, value):
        nonlocal pending
        if pending is not None and event in ("line", "return"):
            effect = changes(frame)
            if event == "return" and raised is None:
                effect = ", ".join(x for x in (effect, "returns " + short(value)) if x)
            show(pending, effect if raised is None else "raises " + raised)
        pending = frame.f_lineno if event == "line" else None
        return local

    raised = None

    def call(frame, event, value):
        if frame.f_code.co_filename != FILE or frame.f_code.co_name != function:
            return None
        changes(frame)  # the arguments are in the test already

        def watched(inner, what, arg):
            nonlocal raised
            if what == "exception":
                raised = error_text(arg[1]).split(" (line")[0] if arg[0] is not StopIteration else None
                return watched
            if what == "line":
                raised = None
            local(inner, what, arg)
            return watched
        return watched

    f = compile_function(code, function)
    sys.settrace(call)
    try:
        f(eval(argument))
    except Exception:
        pass
    finally:
        sys.settrace(None)
    left_out = len(lines) - TRACE_HEAD - TRACE_TAIL
    if left_out > 0:
        lines = lines[:TRACE_HEAD] + [f"... {left_out} lines left out"] + lines[-TRACE_TAIL:]
    return lines


def run_tests(code, function, tests, seconds=0.25):
    """(passed, failures, kind): failures as lines of text, in the words of agent/prompt."""
    try:
        with alarm(seconds):
            try:
                f = compile_function(code, function)
            except SyntaxError as error:
                return False, [f"SyntaxError: {error.msg} (line {error.lineno})"], "syntax"
            except Exception as error:
                return False, [error_text(error)], "load"
            failures, first = [], None
            for argument, value in tests:
                expected = eval(value)
                got = outcome(f, eval(argument))
                if type(got) is type(expected) and got == expected:
                    continue
                first = first or argument
                if len(failures) < 2 * MAX_FAILURES:
                    failures.append(f"assert {function}({argument}) == {value}")
                    failures.append("raised " + error_text(got) if isinstance(got, Exception) else "got " + short(got))
            if not failures:
                return True, [], "pass"
            trace = trace_of(code, function, first)
            return False, failures + (["trace:"] + trace if trace else []), "value"
    except Timeout:
        return False, [], "timeout"
    except (RecursionError, MemoryError):
        return False, [], "error"
