"""Runs inside the jail: answers the judge's questions about a candidate, or runs given tests against one.

It speaks on two pipes (file descriptors 3 and 4), never on stdin or stdout. A frame is a length (4 bytes, little endian) and
one value in the wire form of sandbox/value.h, or MARSHALLED and one in the form of the module marshal. The driver shares its
process with the candidate and is not trusted: a candidate that takes it over can return wrong values, and nothing more, because
the judge compares outside.

One module, kept in parts that embed.cmake joins; only this one has imports.
"""

import ast
import builtins
import marshal
import os
import sys
import types
from itertools import chain

QUESTIONS, ANSWERS = 3, 4
MARSHALLED = b"M"  # before what is in the interpreter's own form: no tag of the wire form
MAX_FRAME = 64 << 20
MAX_DEPTH = 190
MAX_ITEMS = 1_000_000
MAX_TEXT = 2000
MAX_FRAMES = 30


class Unserialisable(Exception):
    pass


class ProtocolEnd(BaseException):
    pass
