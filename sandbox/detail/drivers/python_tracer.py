"""Runs inside the jail after the driver's text: watches one call, line by line, and tells the judge what it saw.

The program runs twice: the first time only counts, so that the second one can keep the first and the last steps and skip what
lies between at little cost. Steps are those of the last call that comes from outside into the program's text: with several
calls in one statement that is the one that failed.
"""

import copy
import io
import reprlib
import time

MAX_STEPS = 2_000_000
PROGRAM = "solution.py"


class StopTrace(BaseException):
    pass


class Watch:
    """A trace function. Without `keep` it counts; with it, it records the steps of the call number `keep`."""

    def __init__(self, seconds, keep=None, total=0, first=0, last=0, value_bytes=120):
        self.deadline = time.process_time() + seconds
        self.keep, self.total, self.first, self.last = keep, total, first, last
        self.calls = -1      # calls into the program from outside, so far
        self.steps = 0       # within the present one
        self.all_steps = 0
        self.depth = -1
        self.begin, self.end = [], []
        self.pending = {}    # frame -> its step whose effect is not known yet
        self.seen = {}       # frame -> texts of its variables
        self.raising = set() # frames that an exception is leaving, unless a line of theirs comes next
        self.busy = False
        self.stopped = ""
        self.stop_at = MAX_STEPS
        r = self.repr = reprlib.Repr()
        r.maxlist = r.maxtuple = r.maxset = r.maxfrozenset = r.maxdict = r.maxdeque = 12
        r.maxstring = r.maxother = r.maxlong = value_bytes
        r.maxlevel = 4
        self.value_bytes = value_bytes

    def text(self, v):
        try:
            shown = self.repr.repr(v)
        except BaseException as error:
            shown = "<repr failed with %s>" % type(error).__name__
        return shown if len(shown) <= self.value_bytes else shown[: self.value_bytes - 1] + "…"

    def message(self, error):
        try:
            shown = "" if error is None else str(error)
        except BaseException as failure:
            shown = "<str failed with %s>" % type(failure).__name__
        return shown if len(shown) <= self.value_bytes else shown[: self.value_bytes - 1] + "…"

    def __call__(self, frame, event, arg):
        name = frame.f_code.co_name
        # What a comprehension or a lambda does stands in the line that holds it.
        if self.busy or frame.f_code.co_filename != PROGRAM or name.startswith("<") and not (name == "<module>" and self.whole):
            return None
        if self.depth < 0:
            self.calls += 1
            self.steps = 0
        self.depth += 1
        self.note(frame, "call", arg)
        return self.local

    whole = False

    def local(self, frame, event, arg):
        if self.busy:
            return self.local
        if event == "exception":
            if arg[0] is StopIteration or arg[0] is GeneratorExit:
                return self.local
            self.raising.add(frame)
            self.note(frame, "raise", arg)
        elif event == "return" and frame in self.raising:
            self.seen.pop(frame, None)  # nothing is returned
        else:
            self.note(frame, event, arg)
        if event != "exception":
            self.raising.discard(frame)
        if event == "return":
            self.depth -= 1
        return self.local

    def note(self, frame, event, arg):
        self.steps += 1
        self.all_steps += 1
        if self.all_steps >= self.stop_at or (self.all_steps & 255) == 0 and time.process_time() > self.deadline:
            self.stopped = "stopped after %d steps" % self.all_steps
            raise StopTrace()
        if self.keep is None or self.calls != self.keep:
            return
        index = self.steps - 1
        if index >= self.first and index < self.total - self.last - 1:
            return
        self.busy = True
        try:
            self.record(frame, event, arg, index)
        finally:
            self.busy = False

    def record(self, frame, event, arg, index):
        changed = self.changes(frame)
        before = self.pending.pop(frame, None)
        if before is not None and event != "call":
            before[5].extend(changed)
            changed = []
        line = frame.f_lineno
        step = [event, line, self.depth, frame.f_code.co_name[:80], index, []]
        if event == "call":
            step[5].extend(changed)
        elif event == "return":
            step[5].append(("return", self.text(arg)))
        elif event == "raise":
            step[5].append((arg[0].__name__, self.message(arg[1])))
        if event == "line":
            self.pending[frame] = step
        if event == "return":
            self.seen.pop(frame, None)
        if index < self.first:
            self.begin.append(step)
        else:
            self.end.append(step)
            if len(self.end) > self.last:
                del self.end[0]

    def changes(self, frame):
        old = self.seen.setdefault(frame, {})
        out = []
        for name, v in list(frame.f_locals.items())[:60]:
            if name.startswith("__") or isinstance(v, types.ModuleType) or callable(v):
                continue
            shown = self.text(v)
            if old.get(name) != shown:
                old[name] = shown
                if len(out) < 12:
                    out.append((name[:80], shown))
        return out


def watched(watch, source, subject, stdin):
    """Loads the program afresh and does what the subject says under the watch: its result, and its exception."""
    files = {}
    kind = subject[0]
    sys.stdin = io.StringIO(stdin)
    result, error = None, None
    try:
        if kind == "run":
            watch.whole = True
            module = types.ModuleType("__main__")
            sys.modules["__main__"] = module
            files[PROGRAM] = source.splitlines()
            code = compile(source, PROGRAM, "exec", dont_inherit=True)
            sys.settrace(watch)
            exec(code, module.__dict__)
        else:
            namespace = load_program(source, PROGRAM, "solution", files)
            if kind == "call":
                args, kwargs = copy.deepcopy(subject[2]), copy.deepcopy(subject[3])
                function = namespace[subject[1]]
                sys.settrace(watch)
                result = function(*args, **kwargs)
                if hasattr(type(result), "__next__"):
                    result = list(result)
            else:
                code = compile(subject[1], "tests.py", "exec", dont_inherit=True)
                files["tests.py"] = subject[1].splitlines()
                sys.settrace(watch)
                exec(code, namespace)
    except StopTrace:
        pass
    except BaseException as e:
        error = e
    finally:
        sys.settrace(None)
    return result, error, files


def trace_call(channel):
    _, source, subject, stdin, first, last, value_bytes, seconds = channel.receive()
    sys.set_int_max_str_digits(0)
    out = sys.stdout
    sys.stdout = io.StringIO()
    counter = Watch(seconds * 0.35)
    watched(counter, source, subject, stdin)
    watch = Watch(seconds * 0.6, counter.calls, counter.steps, first, last, value_bytes)
    if counter.stopped:
        watch.stop_at = counter.all_steps
    sys.stdout = out
    result, error, files = watched(watch, source, subject, stdin)
    lines = files.get(PROGRAM, [])
    steps = []
    for event, line, depth, function, index, changed in watch.begin + watch.end:
        text = lines[line - 1].strip()[:200] if 0 < line <= len(lines) else ""
        steps.append((event, line, depth, function, text, [tuple(c) for c in changed]))
    shown = "" if error is not None or subject[0] != "call" else watch.text(result)
    record = exception_record(error, files) if error is not None else None
    # What came of it is the candidate's word, and no verdict rests on it.
    channel.send(("trace", len(watch.begin), watch.steps, steps, shown, record, watch.stopped or counter.stopped))


def trace_main():
    try:
        trace_call(Channel())
    except ProtocolEnd:
        os._exit(3)
    try:
        sys.stdout.flush()
    except BaseException:
        pass
    os._exit(0)
