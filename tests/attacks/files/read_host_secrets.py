# @attack reads what a host keeps secret
# @expect held
# @never root:
import os

for path in ["/etc/shadow", "/etc/hostname", "/etc/ssh", "/etc/machine-id", "/root", "/home", "/var", "/boot", "/sys/kernel", "/proc/1/environ",
             "/proc/kcore", "/proc/self/root/etc/passwd", "/proc/kallsyms", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/run", "/opt/secret"]:
    try:
        content = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(64)
    except OSError:
        continue
    if content:
        print("ESCAPED:", path, content)
        break
else:
    print("held")
