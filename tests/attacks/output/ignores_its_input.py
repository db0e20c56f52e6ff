# @attack never reads a large input
# @expect held
# @input-bytes 8000000
print("held")
