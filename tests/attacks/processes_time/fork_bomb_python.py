# @attack forks without end, in Python
# @expect process_limit | cpu_limit | exit
# @limits processes=32 cpu=2000 wall=90000 memory=256M
import os

while True:
    os.fork()
