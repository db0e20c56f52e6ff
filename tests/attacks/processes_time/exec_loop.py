# @attack replaces itself for ever
# @expect cpu_limit
# @limits cpu=800 wall=90000
import os
import sys

os.execv(sys.executable, [sys.executable, *sys.argv])
