# @attack makes a child of the broker's from a prepared interpreter, to outlive the run
# @expect denied clone
import ctypes, time

SYS_clone, CLONE_PARENT, SIGCHLD = 56, 0x00008000, 17
if ctypes.CDLL(None).syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0:
    time.sleep(1000)
print("escaped")
