# @attack fills every place that it can write to
# @expect file_limit | memory_limit | held
# @limits files=8M memory=256M
import os

total = 0
for place in ["/tmp", "/dev/shm", ".", "/run", "/var/tmp"]:
    try:
        for i in range(64):
            with open(os.path.join(place, "f%d" % i), "wb") as f:
                f.write(b"x" * (1 << 20))
                f.flush()
                total += 1
    except OSError:
        pass
print("ESCAPED" if total > 24 else "held")
