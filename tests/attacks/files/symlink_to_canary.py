# @attack reads through a link that points at the host
# @expect held
# @arguments $CANARY
import os
import sys

os.symlink(sys.argv[1], "link")
try:
    print("ESCAPED:", open("link").read())
except OSError:
    print("held")
