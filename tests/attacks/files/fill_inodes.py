# @attack takes all inodes
# @expect file_limit | held
# @limits inodes=1000
made = 0
try:
    for i in range(1_000_000):
        open("/tmp/%d" % i, "w").close()
        made += 1
except OSError:
    pass
print("held" if made < 100_000 else "ESCAPED")
