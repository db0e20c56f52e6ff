# @attack closes its input and goes on
# @expect held
# @input-bytes 3000000
import os

os.close(0)
print("held")
