# @attack leaves a file for the next run to find
# @expect held
# @repeat 3
import os

places = ["/tmp", "/dev/shm", "/sandbox/box", "/var/tmp", ".", "/run", "/dev/mqueue"]
found = [p for p in places if os.path.exists(os.path.join(p, "left-behind"))]
for p in places:
    try:
        open(os.path.join(p, "left-behind"), "w").close()
    except OSError:
        pass
print("ESCAPED: %s" % found if found else "held")
