# @attack prints a line of ten megabytes
# @expect output_limit
# @limits output=1M
import sys

sys.stdout.write("y" * 10_000_000)
