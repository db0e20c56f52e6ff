# @attack changes the programs that later runs use
# @expect held
import os
import sys

targets = [sys.executable, os.__file__, "/usr/bin/python3", "/bin/sh", "/usr/lib/x86_64-linux-gnu/libc.so.6", "/etc/ld.so.preload", "/usr/evil", "/evil"]
for path in targets:
    for mode in ["r+b", "ab", "wb"]:
        try:
            open(path, mode).close()
            print("ESCAPED:", path)
            sys.exit()
        except OSError:
            pass
for move in [lambda: os.rename("/usr", "/usr2"), lambda: os.unlink(os.__file__), lambda: os.utime(os.__file__), lambda: os.chmod(os.__file__, 0o777),
             lambda: os.truncate(os.__file__, 0), lambda: os.link(os.__file__, "copy") or open("copy", "r+b"), lambda: os.mkdir("/lib/x")]:
    try:
        move()
        print("ESCAPED by a change of names")
        sys.exit()
    except OSError:
        pass
print("held")
