# @attack reads everything it can see to push the cache out
# @expect held
# @limits memory=64M
import os

count = 0
for directory, _, files in os.walk("/usr/lib"):
    for name in files:
        try:
            with open(os.path.join(directory, name), "rb") as f:
                while f.read(1 << 20):
                    pass
            count += 1
        except OSError:
            pass
        if count > 300:
            break
    if count > 300:
        break
print("held")
