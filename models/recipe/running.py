"""Runs the family's own programs in this process, fast: tests, failures and traces as the service would show them.

Only for programs that this generator or its model wrote, under an alarm. The service runs programs in its sandbox.
"""
import builtins
import contextlib
import os
import signal
import sys
import types

from difference import difference

FILE = "solution.py"  # what the tracer takes for the program's text
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


def _service_tracer():
    """The class that watches programs in the sandbox: what is trained on is what is served."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../sandbox/detail/drivers/python_tracer.py")
    names = {"sys": sys, "types": types, "__name__": "python_tracer"}
    exec(compile(open(path).read(), path, "exec"), names)
    return names["Watch"]


Watch = _service_tracer()


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


def whole(value):
    try:
        return repr(value)
    except Exception:
        return "<a value that cannot be shown>"


def short(value):
    text = whole(value)
    return text if len(text) <= VALUE_BYTES else text[:VALUE_BYTES] + "..."


def error_text(error, code):
    line, tb = None, error.__traceback__
    while tb:
        if tb.tb_frame.f_code.co_filename == FILE:
            line = tb.tb_lineno
        tb = tb.tb_next
    source = code.split("\n")[line - 1].strip() if line else ""
    return f"{type(error).__name__}: {str(error)[:200]}" + (f" in line {line}: {source}" if line else "")


def failure_lines(test, expected, got, code):
    if isinstance(got, Exception):
        return [test, "raised " + error_text(got, code)]
    text = short(got)
    words = difference(expected, got) if text == whole(got) else ""  # the loop reads what is shown
    return [test, "got " + text] + (["difference: " + words] if words else [])


def watched(watch, code, function, argument):
    f = compile_function(code, function)
    value = eval(argument)
    sys.settrace(watch)
    try:
        f(value)
    except Exception:
        pass
    finally:
        sys.settrace(None)


def trace_of(code, function, argument):
    """The lines that ran with their effects, as the service's own tracer sees them and agent/sandbox_checker writes them."""
    counter = Watch(1.0)
    watched(counter, code, function, argument)
    watch = Watch(1.0, counter.calls, counter.steps, 2 * TRACE_HEAD, 2 * TRACE_TAIL, VALUE_BYTES)
    watched(watch, code, function, argument)
    source, parts = code.split("\n"), []
    for steps in (watch.begin, watch.end):
        lines = []  # [line number, source, effect]
        for event, line, depth, _, _, changed in steps:
            if event == "call" and depth == 0:
                continue
            words = {"return": "returns {1}", "raise": "raises {0}: {1}"}.get(event, "{0} = {1}")
            effect = ", ".join(words.format(*pair) for pair in changed)
            if event in ("return", "raise") and lines and lines[-1][0] == line:
                lines[-1][2] = ", ".join(x for x in (lines[-1][2], effect) if x)
            else:
                lines.append([line, source[line - 1].strip(), effect])
        parts.append(lines)
    skipped = watch.steps - len(watch.begin) - len(watch.end)
    head = parts[0][:TRACE_HEAD]
    rest = parts[0][len(head):] + parts[1]
    tail = rest[max(0, len(rest) - TRACE_TAIL):]
    left_out = max(0, skipped) + len(rest) - len(tail)
    shown = [source + ("  # " + effect if effect else "") for _, source, effect in head + tail]
    return shown[:len(head)] + ([f"... {left_out} lines left out"] if left_out else []) + shown[len(head):]


def run_tests(code, function, tests, seconds=0.25):
    """(passed, failures, kind): failures as lines of text, in the words of agent/prompt."""
    try:
        with alarm(seconds):
            try:
                f = compile_function(code, function)
            except SyntaxError as error:
                return False, [f"SyntaxError: {error}"], "syntax"
            except Exception as error:
                return False, [error_text(error, code)], "load"
            failures, failed, first = [], 0, None
            for argument, value in tests:
                expected = eval(value)
                got = outcome(f, eval(argument))
                if type(got) is type(expected) and got == expected:
                    continue
                first = first or argument
                failed += 1
                if failed <= MAX_FAILURES:
                    failures += failure_lines(f"assert {function}({argument}) == {value}", expected, got, code)
            if not failures:
                return True, [], "pass"
            trace = trace_of(code, function, first)
            return False, failures + (["trace:"] + trace if trace else []), "value"
    except Timeout:
        return False, [], "timeout"
    except (RecursionError, MemoryError):
        return False, [], "error"
