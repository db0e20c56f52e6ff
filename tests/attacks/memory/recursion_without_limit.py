# @attack recurses without end and without Python's limit
# @expect signal | memory_limit | exit
# @expect(user) signal | memory_limit | exit | cpu_limit
# @expect(no_cgroups) signal | memory_limit | exit | cpu_limit
# @limits memory=128M cpu=6000
import sys

sys.setrecursionlimit(10**9)

def deeper(n):
    return deeper(n + 1)

deeper(0)
