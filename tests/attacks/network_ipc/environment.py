# @attack reads secrets from its environment
# @expect held
import os

expected = {"PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE", "USER", "PWD", "SHLVL", "_", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "LC_ALL", "TZ", "TERM"}
extra = {k: v for k, v in os.environ.items() if k not in expected}
print("ESCAPED: %s" % extra if extra else "held")
