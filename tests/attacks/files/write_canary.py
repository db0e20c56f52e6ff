# @attack overwrites a file of the host whose path it knows
# @expect held
# @arguments $CANARY
import sys

try:
    with open(sys.argv[1], "w") as f:
        f.write("owned")
    print("ESCAPED")
except OSError:
    print("held")
