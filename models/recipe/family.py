"""The task family: typed compositions of primitives -> English description, tests, reference program.

No held-out program is ever in training, and neither is any adjacent pair of primitives that is reserved for the
held-out split: 12 % of the typed pairs, chosen by a hash of their names.
"""
import random
import re
import zlib
from dataclasses import dataclass

from primitives import NAMES, PRIMITIVES, VARIABLE
from running import Timeout, alarm, compile_function, outcome

BY_INPUT, FAMILY, SAME_TYPES = {}, {}, {}
for _name in NAMES:
    _p = PRIMITIVES[_name]
    BY_INPUT.setdefault(_p.takes, []).append(_name)
    SAME_TYPES.setdefault((_p.takes, _p.gives), []).append(_name)
    if _p.family:
        FAMILY.setdefault(_p.family, []).append(_name)

VAGUE = 0.5  # how often a step that has a vague phrasing gets it
FUNCTION_NAMES = "f solve process transform compute run answer convert calc work task apply".split()
WORDS = ("apple bob Cat dog Echo fish go Hello ice jam kite level Moon noon Oak pear queen Red sun tree up violet we "
         "Xylo yes zoo a1 b22 top 7up Mix data test code loop").split()
SYLLABLES = "ba co du fi ga hel iv ko lu mar ne ol pa qui ro sal ta un ver wi xe yo zan tion ter ly ing".split()
# Numbers of a list lie between one of LOWEST and HIGHEST; a number alone in the first range, or one time in five in the second.
LOWEST, HIGHEST, NUMBER_RANGES = (-9, -4, 0, 1), 15, ((0, 30), (0, 9))
CONSTANT_GAP = 4  # so many constants past its range no step has in training
WIDE_NUMBER, WIDE_TEXT = 60, 12  # training's largest constants: of arithmetic and comparisons; that far past the range for text
STEP_WEIGHTS = ((1, 18), (2, 40), (3, 30), (4, 12))
# These grow numbers fast or loop over them: one of each kind a program, or it may run for ever.
GROWS = {"fact", "fib", "i_sq", "prod", "i_mul"}
SLOW = {"divisors", "upto", "is_prime", "fact", "fib", "i_sq"}
SHOWN_TESTS, TESTS = 1, 4


@dataclass
class Task:
    program: list       # of (primitive, constant or None)
    function: str
    tests: list         # of (argument, value), both as Python text
    description: str
    vague: list         # one bool a step
    comments: list      # one text a step: what it does, in the description's words, or in others where those are vague
    code: str           # with them


# ---------------------------------------------------------------- programs
def held_pair(a, b):
    return zlib.crc32((a + ">" + b).encode()) % 100 < 12


def is_held(program):
    return any(held_pair(a, b) for (a, _), (b, _) in zip(program, program[1:]))


def step_code(name, k):
    return PRIMITIVES[name].code.replace("{k}", str(k))


def argument_of(program):
    return VARIABLE[PRIMITIVES[program[0][0]].takes]


def code_of(program, function, comments=None):
    lines = [f"def {function}({argument_of(program)}):"]
    for j, (name, k) in enumerate(program):
        lines += ["    # " + comments[j]] if comments else []
        lines += ["    " + line for line in step_code(name, k).split("\n")]
    lines.append("    return " + VARIABLE[PRIMITIVES[program[-1][0]].gives])
    return "\n".join(lines)


def random_constant(name, rng):
    constants = PRIMITIVES[name].constants
    return rng.choice(list(constants)) if constants else None


def training_constant(name, rng):
    """Half are larger than those of the held-out split, and many, so that a constant is copied and not recognised. Between the two
    lies a gap that perturbed.py draws from. A slice has none: on lists as short as these, all large ones are the same."""
    p = PRIMITIVES[name]
    if not p.constants or "xs = xs[" in p.code or rng.random() < 0.5:
        return random_constant(name, rng)
    highest = WIDE_NUMBER if p.takes in "LI" else p.constants[-1] + WIDE_TEXT
    return rng.randint(p.constants[-1] + CONSTANT_GAP + 1, highest)


def random_program(rng, steps=None, training=False, practice=None):
    """`practice` (practice.Practice): which steps come up more often than others."""
    if steps is None:
        steps = rng.choices([n for n, _ in STEP_WEIGHTS], [w for _, w in STEP_WEIGHTS])[0]
    while True:
        kind = rng.choices("LSWI", (50, 26, 17, 7))[0]
        program = []
        for j in range(steps):
            if kind == "B":
                break
            last = j == steps - 1
            choices = [x for x in BY_INPUT[kind] if x not in [name for name, _ in program]]
            if kind == "L" and rng.random() < (0.4 if last else 0.1):
                choices = [x for x in choices if PRIMITIVES[x].gives != "L"]
            if kind in "LI" and not last:
                choices = [x for x in choices if PRIMITIVES[x].gives != "B"]
            if any(name in GROWS for name, _ in program):
                choices = [x for x in choices if x not in SLOW]
            name = practice.step(choices, rng) if practice else rng.choice(choices)
            program.append((name, (training_constant if training else random_constant)(name, rng)))
            kind = PRIMITIVES[name].gives
        if len(program) == steps:
            return program


def siblings(name, k, rng):
    """What else the vague phrasing of this step could mean."""
    p = PRIMITIVES[name]
    if not p.family:
        return []
    members = FAMILY[p.family]
    if len(members) == 1:
        return [(name, q) for q in p.constants or () if q != k]
    return [(m, k if PRIMITIVES[m].constants else None) for m in members if m != name]


def training_name(rng):
    """Any name at all: the program must not depend on it."""
    dice = rng.random()
    if dice < 0.3:
        return rng.choice(FUNCTION_NAMES)
    if dice < 0.6:
        return rng.choice(FUNCTION_NAMES[1:]) + "_" + rng.choice(WORDS[2:33]).lower()
    parts = ["".join(rng.choice(SYLLABLES) for _ in range(rng.randint(1, 3))) for _ in range(rng.randint(1, 2))]
    return "_".join(parts) + (rng.choice("0123456789") if rng.random() < 0.1 else "")


# ---------------------------------------------------------------- tests
def random_input(kind, program, rng):
    if kind == "L":
        if rng.random() < 0.06:
            return []
        constants = [k for _, k in program if k is not None]
        low, high = rng.choice(LOWEST), HIGHEST
        if constants and max(constants) > high:  # only in training: numbers on both sides of it
            low, high = (max(constants) - high, max(constants) + high) if rng.random() < 0.5 else (low, high)
        xs = [rng.randint(low, high) for _ in range(rng.randint(3, 6))]
        if constants and rng.random() < 0.6:
            xs[rng.randrange(len(xs))] = rng.choice(constants)
        if rng.random() < 0.5:
            xs[rng.randrange(len(xs))] = xs[rng.randrange(len(xs))]
        return xs
    if kind == "S":
        if rng.random() < 0.08:
            return rng.choice(["", "noon", "level", "a"])
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 3)))
    if kind == "W":
        if rng.random() < 0.06:
            return []
        words = [rng.choice(WORDS) for _ in range(rng.randint(2, 5))]
        if rng.random() < 0.3:
            words.append(rng.choice(words))
        return words
    return rng.randint(*NUMBER_RANGES[0 if rng.random() < 0.8 else 1])


def small(value):
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        return abs(value) < 100000
    if isinstance(value, str):
        return len(value) <= 36
    return len(value) <= 9 and all(small(x) for x in value) and len(repr(value)) < 64


def mutants(program, rng):
    """Programs that the tests should tell from this one."""
    out = []
    for j, (name, k) in enumerate(program):
        p = PRIMITIVES[name]
        for m in siblings(name, k, rng):
            out.append(program[:j] + [m] + program[j + 1:])
        if p.takes == p.gives and len(program) > 1:
            out.append(program[:j] + program[j + 1:])
        if p.constants:
            out.append(program[:j] + [(name, k + 1)] + program[j + 1:])
        other = rng.choice(SAME_TYPES[p.takes, p.gives])
        if other != name:
            out.append(program[:j] + [(other, random_constant(other, rng))] + program[j + 1:])
    return out


def make_tests(program, function, rng):
    """Tests chosen greedily to tell mutants apart; None where some step does not matter on random inputs."""
    reference = compile_function(code_of(program, function), function)
    kind = PRIMITIVES[program[0][0]].takes
    inputs = []
    for _ in range(12):
        argument = random_input(kind, program, rng)
        if repr(argument) in [repr(a) for a, _ in inputs]:
            continue
        value = outcome(reference, argument)
        if isinstance(value, Exception):
            return None
        if small(value):
            inputs.append((argument, value))
    if len(inputs) < TESTS + 1:
        return None
    killers = []  # for each mutant, the inputs that tell it apart
    for mutant in mutants(program, rng)[:12]:
        f = compile_function(code_of(mutant, function), function)
        row = set()
        for j, (argument, value) in enumerate(inputs):
            got = outcome(f, argument)
            if type(got) is not type(value) or got != value:
                row.add(j)
        killers.append(row)
    dull = sum(1 for row in killers if not row)
    if dull and dull * 3 >= len(killers):
        return None
    values = {repr(v) for _, v in inputs}
    if len(values) < (2 if PRIMITIVES[program[-1][0]].gives == "B" else 3):
        return None
    chosen, alive = [], list(killers)
    while len(chosen) < TESTS:
        rest = [j for j in range(len(inputs)) if j not in chosen]
        best = max(rest, key=lambda j: (sum(1 for row in alive if j in row), bool(inputs[j][1]), -len(repr(inputs[j]))))
        chosen.append(best)
        alive = [row for row in alive if best not in row] or list(killers)
    if len({repr(inputs[j][1]) for j in chosen}) < 2:
        return None
    return [(repr(inputs[j][0]), repr(inputs[j][1])) for j in chosen]


# ---------------------------------------------------------------- English
INTRODUCTIONS = ["Write a Python function `{f}({a})`.", "Write `{f}({a})`.", "Implement the function `{f}({a})`.",
                 "Define a Python function `{f}({a})`."]
# What only training adds, so that a description is read and not recognised; perturbed.py has others again.
MORE_INTRODUCTIONS = ["Create a function `{f}({a})`.", "Write code for `{f}({a})`.", "Your task is `{f}({a})`.", "Complete `{f}({a})`.",
                      "Make a Python function `{f}` that takes `{a}`.", "Build `{f}({a})` in Python.", "We want a function `{f}({a})`.",
                      "Can you write `{f}({a})`?", "Develop `{f}({a})`.", "The function `{f}({a})` is missing.", "Wanted: `{f}({a})`.",
                      "Program a function `{f}` with the argument `{a}`.", "Fill in `def {f}({a})`.", "`{f}({a})`:",
                      "Let `{f}({a})` do what follows.", "Here is what `{f}({a})` does."]
MORE_WORDS = {
    "numbers": ("integers", "entries", "items", "elements"), "values": ("entries", "items", "integers", "elements"),
    "number": ("integer", "entry", "item", "element"), "value": ("entry", "item", "integer", "element"),
    "elements": ("items", "entries"), "text": ("string",), "string": ("text",), "result": ("outcome",),
    "keep": ("retain", "leave"), "remove": ("delete", "discard", "throw out"), "drop": ("delete", "discard", "leave out"),
    "compute": ("calculate", "work out"), "find": ("determine", "get", "work out"), "take": ("pick", "get"), "put": ("place",),
    "convert": ("change",), "turn": ("make",), "check": ("decide", "find out"), "tell": ("say",), "each": ("every",),
    "every": ("each",), "greater": ("larger", "bigger"), "less": ("smaller",), "largest": ("biggest", "greatest"),
    "smallest": ("least", "lowest"), "ascending": ("increasing", "rising"), "descending": ("decreasing", "falling"),
    "blanks": ("spaces",), "spaces": ("blanks",), "join": ("connect", "put together"),
    "glue": ("join",), "capital": ("upper case",), "repeat": ("write",), "sort": ("order", "arrange"),
}
_MORE_WORDS = re.compile(r"(?<!absolute )\b(" + "|".join(MORE_WORDS) + r")\b")


def capital(text):
    return text[0].upper() + text[1:]


def canonical_phrase(name, k):
    return PRIMITIVES[name].phrases[0].replace("{k}", str(k))


def phrase(name, k, vague, rng, practice=None):
    p = PRIMITIVES[name]
    plain = practice.phrase if practice else lambda phrases, rng: rng.choice(phrases)
    return (rng.choice(p.vague) if vague else plain(p.phrases, rng)).replace("{k}", str(k))


def sentences(phrases, rng):
    if len(phrases) == 1:
        return capital(phrases[0]) + "."
    style = rng.random()
    if style < 0.30:
        return capital(", then ".join(phrases)) + "."
    if style < 0.55:
        middle = phrases[1:-1] + ["finally " + phrases[-1]] if len(phrases) > 2 else [phrases[1]]
        return "First " + phrases[0] + ", then " + ", then ".join(middle) + "."
    if style < 0.75:
        return " ".join(f"{i + 1}. {capital(p)}." for i, p in enumerate(phrases))
    if style < 0.90:
        return " ".join([capital(phrases[0]) + "."] +
                        [rng.choice(["Then", "Next,", "After that"]) + " " + p + "." for p in phrases[1:]])
    return capital(phrases[-1]) + ", but first " + " and then ".join(phrases[:-1]) + "."


def more_sentences(phrases, rng):
    """As `sentences`, in the forms that only training has."""
    style = rng.randrange(14)
    if style == 0:
        return capital("; then ".join(phrases)) + "."
    if style == 1:
        return " ".join(f"Step {i + 1}: {p}." for i, p in enumerate(phrases))
    if style == 2:
        return "Do this:" + "".join(f"\n- {p}" for p in phrases)
    if style == 3:
        return " ".join(f"{letter}) {p}" for letter, p in zip("abcdefgh", phrases))
    if style == 4:
        return "It must " + " and ".join(phrases) + "."
    if style == 5:
        return "Begin with this: " + ". Go on: ".join(phrases) + "."
    if style == 6:
        return capital(", and after that ".join(phrases)) + "."
    if style == 7:
        return " -> ".join(phrases)
    if style == 8:
        return "\n".join(f"{i + 1}. {p}" for i, p in enumerate(phrases))
    if style == 9:
        return "The function should " + ", next ".join(phrases) + "."
    if style == 10:
        return capital(". Once that is done, ".join(phrases)) + "."
    if style == 11:
        return " ".join(f"{roman}) {p};" for roman, p in zip(("i", "ii", "iii", "iv"), phrases))
    if style == 12:
        return "You have to " + "; with what comes out, ".join(phrases) + "."
    return "Before you " + phrases[-1] + ", " + " and then ".join(phrases[:-1]) + "." if len(phrases) > 1 else capital(phrases[0])


def other_words(text, rng):
    """Some words of a phrase, in others that only training has; articles may go."""
    text = _MORE_WORDS.sub(lambda m: rng.choice(MORE_WORDS[m.group()]) if rng.random() < 0.5 else m.group(), text)
    return text.replace(" the ", " ") if rng.random() < 0.2 else text


def is_wide(name, k):
    constants = PRIMITIVES[name].constants
    return bool(constants) and k > constants[-1]


def draw_vague(program, rng, share):
    """A large constant that only training has is always said."""
    return [bool(PRIMITIVES[name].vague) and rng.random() < share and not is_wide(name, k) for name, k in program]


def described(program, function, tests, vague, rng, more=False, practice=None):
    """The task, in words. `vague`: a bool for each step. `more`: now and then in forms that the held-out split does not have."""
    phrases = [phrase(name, k, v, rng, practice) for (name, k), v in zip(program, vague)]
    if more and rng.random() < 0.4:
        phrases = [other_words(p, rng) for p in phrases]
    # Drawn before the sentences: held_out.jsonl.gz is made anew from its seed to the byte.
    introduction = rng.choice(MORE_INTRODUCTIONS if more and rng.random() < 0.5 else INTRODUCTIONS)
    join = more_sentences if more and rng.random() < 0.5 else sentences
    description = introduction.format(f=function, a=argument_of(program)) + " " + join(phrases, rng)
    comments = [canonical_phrase(*step) if v else text for step, v, text in zip(program, vague, phrases)]
    return Task(program, function, tests, description, vague, comments, code_of(program, function, comments))


def tests_in_time(program, function, rng):
    try:
        with alarm(0.05):
            return make_tests(program, function, rng)
    except (Timeout, MemoryError):
        return None


def make_task(rng, steps=None, held=None, vague_share=VAGUE, practice=None):
    """`held`: whether the program is one of the held-out split. Training (False) has names, constants and words of its own, too."""
    training = held is False
    while True:
        program = random_program(rng, steps, training, practice)
        if held is not None and is_held(program) != held:
            continue
        function = training_name(rng) if training else rng.choice(FUNCTION_NAMES)
        tests = tests_in_time(program, function, rng)
        if not tests:
            continue
        return described(program, function, tests, draw_vague(program, rng, vague_share), rng, training, practice)


def redrawn(program, vague, rng):
    """Another training task with this program: other name, tests and words. None where no tests were found."""
    function = training_name(rng)
    tests = tests_in_time(program, function, rng)
    return tests and described(program, function, tests, vague, rng, True)
