# @attack ends well from a thread while a call is under way
import os
import threading
import time

def f(x):
    threading.Thread(target=lambda: (time.sleep(0.05), os._exit(0))).start()
    time.sleep(1)
    return 0
