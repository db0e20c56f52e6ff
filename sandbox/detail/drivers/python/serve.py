# The judge's questions, one after another.


def serve(channel):
    files = {}
    candidate = Candidate(channel, files)
    sys.set_int_max_str_digits(0)
    while True:
        question = channel.receive(candidate.objects)
        if question[0] == "end":
            channel.send(("bye", question[1]))
            return
        if question[0] == "tests":
            serve_tests(channel, files, question)
        else:
            candidate.answer(question)


def main():
    code = 0
    try:
        serve(Channel())
    except ProtocolEnd:
        code = 3
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        pass
    os._exit(code)
