"""The words of agent/prompt.cpp, edition fixpoint-2, byte for byte. tests/models compares the two."""

import re

EDITION = "fixpoint-2"
HEADLINES = {"value": "The tests failed.", "load": "The program crashed.", "syntax": "The program does not compile.",
             "timeout": "The program took too long.", "error": "The tests failed."}


def task_message(task, shown=1):
    lines = [task.description]
    lines += [f"assert {task.function}({a}) == {v}" for a, v in task.tests[:shown]]
    return "\n".join(lines + ["Answer with one fenced Python program."])


def feedback_message(kind, failures, unit_test=True, trace=True):
    """`failures` as running.run_tests gives them."""
    at = failures.index("trace:") if "trace:" in failures else len(failures)
    lines = [HEADLINES[kind]] + (failures[:at] if unit_test else []) + (failures[at:] if trace else [])
    return "\n".join(lines + ["Explain what is wrong, then answer with the corrected program."])


def fenced(code):
    return "```python\n" + code + "\n```"


def program_in(text):
    """The program of an answer, as agent/extract finds it in the forms that this model writes."""
    start = text.find("```python\n")
    if start < 0:
        return text
    body = text[start + len("```python\n"):]
    end = body.find("```")
    return (body if end < 0 else body[:end]).rstrip("\n")


def with_program_start(text, function):
    """The answer as a server makes it that writes the function's name itself (the file's fixpoint.program_start_given)."""
    return re.sub(r"(```python\ndef )\w+", lambda m: m.group(1) + function, text)


def chat(messages):
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in messages)
