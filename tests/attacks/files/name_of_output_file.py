# @attack makes links where a careless runner keeps its output
# @expect ok
# @output written
import os

for name in ["stdout", "stderr", "out.txt", "result.json", "output", "verdict"]:
    os.symlink("/etc/passwd", name)
print("written")
