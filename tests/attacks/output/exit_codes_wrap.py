# @attack ends with a code that wraps to nothing
# @expect ok
import os

os._exit(256)
