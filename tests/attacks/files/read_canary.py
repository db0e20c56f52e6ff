# @attack reads a file of the host whose path it knows
# @expect held
# @arguments $CANARY
import sys

try:
    print("ESCAPED:", open(sys.argv[1]).read())
except OSError:
    print("held")
