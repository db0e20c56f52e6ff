# @attack doubles a list
# @expect memory_limit | exit
# @limits memory=96M
x = [0]
while True:
    x += x
