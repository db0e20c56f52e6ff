# @attack computes a number without end
# @expect cpu_limit | memory_limit | exit
# @limits memory=96M cpu=800 wall=90000
x = 9
while True:
    x = x ** 9
