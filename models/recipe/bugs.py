"""Wrong programs with real feedback and true explanations: what repairs are learnt from."""
import difflib
import re

from family import (SAME_TYPES, canonical_phrase, code_of, random_constant, siblings)
from primitives import NAMES, PRIMITIVES
from prompts import feedback_message, fenced, task_message
from running import run_tests

ONLY_VERDICT = 0.04  # feedback without test and trace, so that `simple` is a prompt the model knows
LONGEST_LINE = 160   # bytes of feedback in a line; the loop shortens longer ones, which teach nothing


# ---------------------------------------------------------------- reading a program back
def _pattern(name):
    lines = "\n".join("    " + line for line in PRIMITIVES[name].code.split("\n"))
    text = re.escape(lines).replace(re.escape("{k}"), r"(?P<k>\d+)", 1).replace(re.escape("{k}"), "(?P=k)")
    return re.compile(text + "\n")


# Longest first, and those without a constant before those with one: `% 2` is "even" before it is "a multiple of 2".
_PATTERNS = sorted(((name, _pattern(name)) for name in NAMES),
                   key=lambda x: (PRIMITIVES[x[0]].constants is not None, -len(PRIMITIVES[x[0]].code)))


def is_comment(line):
    return line.lstrip().startswith("#")


def parse(code):
    """The primitives of a program, or None where it is not made of them."""
    lines = [line for line in code.split("\n") if not is_comment(line)]
    if len(lines) < 2 or not lines[-1].startswith("    return "):
        return None
    body, at, out = "\n".join(lines[1:-1]) + "\n", 0, []
    while at < len(body):
        for name, pattern in _PATTERNS:
            match = pattern.match(body, at)
            if match:
                out.append((name, int(match.group("k")) if PRIMITIVES[name].constants else None))
                at = match.end()
                break
        else:
            return None
        if len(out) > 8:
            return None
    return out


# ---------------------------------------------------------------- explanations
def explain(wrong, right):
    """What must change from one list of primitives to the other; '' where nothing does."""
    a = [canonical_phrase(*step) for step in wrong]
    b = [canonical_phrase(*step) for step in right]
    if sorted(a) == sorted(b) and a != b:
        j = next(i for i in range(len(a)) if a[i] != b[i])
        return f"The steps are in the wrong order: step {j + 1} must {b[j]}."
    out = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        both = min(i2 - i1, j2 - j1)
        out += [f"Step {j1 + q + 1} must {b[j1 + q]}, but the code does this: {a[i1 + q]}." for q in range(both)]
        out += [f"Step {q + 1} is missing: {b[q]}." for q in range(j1 + both, j2)]
        out += [f"A step is not wanted: {a[q]}." for q in range(i1 + both, i2)]
    return " ".join(out[:3])


def explain_text(code, task):
    """For any program at all, the model's own included."""
    program = parse(code)
    if program is not None and program != task.program:
        return explain(program, task.program)
    mine, right = code.split("\n"), task.code.split("\n")
    for j, line in enumerate(right):
        if j >= len(mine):
            return f"The code stops too early: line {j + 1} `{line.strip()}` is missing."
        if mine[j] != line:
            return f"Line {j + 1} is wrong: it must be `{line.strip()}`."
    return f"There is too much code after line {len(right)}."


# ---------------------------------------------------------------- bugs
def written(program, task):
    """A program as an answer to the task: what it shares with the right one has the same comments."""
    comments = dict(zip(task.program, task.comments))
    return code_of(program, task.function, [comments.get(step) or canonical_phrase(*step) for step in program])


def wrong_steps(task, rng):
    """A program of the same form: a sibling, another primitive or constant, a missing, extra or swapped step."""
    program = list(task.program)
    vague = [j for j, v in enumerate(task.vague) if v]
    if vague and rng.random() < 0.8:
        for j in vague if rng.random() < 0.4 else [rng.choice(vague)]:
            others = siblings(*program[j], rng)
            if others:
                program[j] = rng.choice(others)
        if program != task.program:
            return program
    j = rng.randrange(len(program))
    name, k = program[j]
    p = PRIMITIVES[name]
    dice = rng.random()
    if dice < 0.35:
        other = rng.choice(SAME_TYPES[p.takes, p.gives])
        program[j] = (other, random_constant(other, rng))
    elif dice < 0.50 and p.constants:
        program[j] = (name, max(1, k + rng.choice((-2, -1, 1, 2))))
    elif dice < 0.65 and siblings(name, k, rng):
        program[j] = rng.choice(siblings(name, k, rng))
    elif dice < 0.78 and p.takes == p.gives and len(program) > 1:
        del program[j]
    elif dice < 0.88 and (p.takes, p.takes) in SAME_TYPES:
        other = rng.choice(SAME_TYPES[p.takes, p.takes])
        program.insert(j, (other, random_constant(other, rng)))
    else:
        for q in range(len(program) - 1):
            a, b = PRIMITIVES[program[q][0]], PRIMITIVES[program[q + 1][0]]
            if a.takes == a.gives == b.takes == b.gives:
                program[q], program[q + 1] = program[q + 1], program[q]
                break
    return program if program != task.program else None


SLIPS = [("% 2 == 0", "% 2 == 1"), (" > ", " < "), (" < ", " > "), (">=", ">"), ("<=", "<"), (" + ", " - "), (" * ", " + "),
         (" // ", " / "), ("[1:]", "[:1]"), ("[::2]", "[1::2]"), ("min(", "max("), ("max(", "min("), (" += ", " = "),
         ("range(1, n + 1)", "range(1, n)"), ("xs[-1]", "xs[0]"), ("sorted(xs)", "xs.sort()"), ("len(", "length("),
         ("sum(", "total("), (".upper()", ".toUpperCase()"), (".join(", ".concat("), ("abs(", "absolute("),
         (".isdigit()", ".digit()"), (".split()", ".words()"), ("str(", "string("), (".replace(", ".swap(")]


def wrong_text(task, rng):
    """A slip of the pen: (code, explanation) or None."""
    lines = task.code.split("\n")
    j = rng.choice([j for j in range(1, len(lines) - 1) if not is_comment(lines[j])])
    line, dice = lines[j], rng.random()
    if dice < 0.2:
        return "\n".join(lines[:-1]), f"The function never returns its result; the last line must be `{lines[-1].strip()}`."
    if dice < 0.4:
        names = re.findall(r"\b(xs|words|s|n|r|out|total)\b", line)
        if not names:
            return None
        name = rng.choice(names)
        other = rng.choice([x for x in ("xs", "words", "s", "n", "ys", "lst", "text", "result", "out") if x != name])
        at = rng.choice([m.start() for m in re.finditer(rf"\b{name}\b", line)])
        lines[j] = line[:at] + other + line[at + len(name):]
        return "\n".join(lines), f"Line {j + 1} uses `{other}`, but the variable is `{name}`."
    if dice < 0.55:
        at = [q for q, c in enumerate(line) if c in ")]"]
        if not at:
            return None
        q = rng.choice(at)
        lines[j] = line[:q] + line[q + 1:]
        return "\n".join(lines), f"Line {j + 1} has a syntax error: a closing `{line[q]}` is missing."
    slips = [s for s in SLIPS if s[0] in line]
    if not slips:
        return None
    right, wrong = rng.choice(slips)
    lines[j] = line.replace(right, wrong, 1)
    return "\n".join(lines), f"Line {j + 1} is wrong: `{wrong.strip()}` must be `{right.strip()}`."


def make_bug(task, rng):
    """(code, kind, failures, explanation), run for real; None where no bug was found that fails a test."""
    for _ in range(6):
        if rng.random() < (0.9 if any(task.vague) else 0.65):
            program = wrong_steps(task, rng)
            if not program:
                continue
            try:
                code = written(program, task)
            except IndexError:
                continue
            why = explain(program, task.program)
        else:
            slip = wrong_text(task, rng)
            if not slip:
                continue
            code, why = slip
        passed, failures, kind = run_tests(code, task.function, task.tests)
        if not passed and kind not in ("timeout", "error") and why and max(map(len, failures), default=0) <= LONGEST_LINE:
            return code, kind, failures, why
    return None


# ---------------------------------------------------------------- samples: [(role, text, characters of it that are learnt)]
def learnt(text):
    return "assistant", text, len(text)


def attempt(code, task, before=""):
    """A wrong program, after what is right to say. Learnt up to the line that is wrong: the way there was right."""
    right = 0
    for mine, wanted in zip(code.splitlines(True), task.code.splitlines(True)):
        if mine != wanted:
            break
        right += len(mine)
    return "assistant", before + fenced(code), len(before + fenced("")[:-4]) + right


def plain_sample(task, shown=1):
    return [("user", task_message(task, shown), 0), learnt(fenced(task.code))]


def repair_sample(task, rng, rounds=None, shown=1):
    """One or two wrong attempts, then the explanation and the reference. What is wrong is never learnt."""
    messages = [("user", task_message(task, shown), 0)]
    before = ""
    for r in range(rounds or (2 if rng.random() < 0.2 else 1)):
        bug = make_bug(task, rng)
        if not bug:
            return None
        code, kind, failures, why = bug
        messages.append(attempt(code, task, before))
        only_verdict = rng.random() < ONLY_VERDICT
        messages.append(("user", feedback_message(kind, failures, not only_verdict, not only_verdict), 0))
        before = why + "\n"
    return messages + [learnt(before + fenced(task.code))]
