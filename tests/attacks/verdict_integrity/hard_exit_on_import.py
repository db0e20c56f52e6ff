# @attack ends well while it is imported, past every handler
import os

os._exit(0)
