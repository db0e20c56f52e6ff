# @attack leaves a poisoned module for the next run
# @expect held
import os
import sys

for directory in sys.path + [os.path.dirname(os.__file__) + "/__pycache__", "/usr/lib/python3/dist-packages"]:
    if directory.startswith(("/usr", "/lib")):
        for name in ["sitecustomize.py", "usercustomize.py", "evil.pth"]:
            try:
                open(os.path.join(directory, name), "w").close()
                print("ESCAPED:", directory)
                sys.exit()
            except OSError:
                pass
print("held")
