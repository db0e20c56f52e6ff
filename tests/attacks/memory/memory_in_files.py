# @attack takes memory by files instead of pages
# @expect file_limit | memory_limit | held
# @limits memory=64M files=256M
try:
    with open("/dev/shm/x", "wb") as f:
        for _ in range(512):
            f.write(b"x" * (1 << 20))
    print("ESCAPED")
except OSError:
    print("held")
