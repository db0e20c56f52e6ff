# @attack fills the file system
# @expect file_limit | held
# @limits files=8M memory=256M
try:
    with open("/tmp/big", "wb") as f:
        while True:
            f.write(b"x" * (1 << 20))
except OSError:
    print("held")
