# Frames on the two pipes, and what is said of an exception.


class Channel:
    def __init__(self):
        self.read, self.write = os.read, os.write
        self.data, self.at = b"", 0  # what was read, and how far it was used: questions come many at a time

    def exactly(self, n):
        end = self.at + n
        if end > len(self.data):
            self.fill(n)
            end = n
        part = self.data[self.at : end]
        self.at = end
        if end == len(self.data):  # a large question is not kept while the program runs
            self.data, self.at = b"", 0
        return part

    def fill(self, n):
        parts = [self.data[self.at :]]
        have = len(parts[0])
        while have < n:
            part = self.read(QUESTIONS, min(max(n - have, 1 << 16), 1 << 20))
            if not part:
                raise ProtocolEnd()
            parts.append(part)
            have += len(part)
        self.data, self.at = b"".join(parts), 0

    def receive(self, objects=None):
        n = int.from_bytes(self.exactly(4), "little")
        if n > MAX_FRAME:
            raise ProtocolEnd()
        body = self.exactly(n)
        return marshal.loads(memoryview(body)[1:]) if body[:1] == MARSHALLED else Decoder(body, objects).value()

    def send(self, message, objects=None):
        self.send_bytes(encode(message, objects))

    def send_bytes(self, body):
        data = len(body).to_bytes(4, "little") + body
        at = 0
        while at < len(data):
            at += self.write(ANSWERS, data[at : at + (1 << 20)])


def capped(text, limit=MAX_TEXT):
    return text if len(text) <= limit else text[:limit] + "… (%d more characters)" % (len(text) - limit)


def text_of(function, v, limit=MAX_TEXT):
    try:
        return capped(str(function(v)), limit)
    except BaseException as error:
        return "<%s failed with %s>" % (function.__name__, type(error).__name__)


def frames_of(traceback, files):
    """The frames in the candidate's (and the tests') text, outermost first: line, function, source line."""
    out = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        lines = files.get(code.co_filename)
        if lines is not None:
            line = traceback.tb_lineno
            source = lines[line - 1].strip()[:200] if 0 < line <= len(lines) else ""
            out.append((code.co_filename, line, code.co_name[:100], source))
        traceback = traceback.tb_next
    if len(out) > MAX_FRAMES:
        out = out[: MAX_FRAMES // 2] + out[-MAX_FRAMES // 2 :]
    return out


def exception_record(error, files):
    t = type(error)
    bases = [c.__name__ for c in t.__mro__ if getattr(builtins, c.__name__, None) is c]
    if isinstance(error, SyntaxError):
        message = text_of(str, error)
        frames = [(str(error.filename), error.lineno or 0, "", (error.text or "").strip()[:200])]
    else:
        message = text_of(str, error)
        frames = frames_of(error.__traceback__, files)
    return (t.__name__[:100], bases, message, frames)
