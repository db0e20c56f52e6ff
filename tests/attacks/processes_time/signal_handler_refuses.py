# @attack refuses to die of SIGTERM and SIGXCPU
# @expect cpu_limit
# @limits cpu=400 wall=90000
import signal

for s in [signal.SIGTERM, signal.SIGXCPU, signal.SIGALRM, signal.SIGINT, signal.SIGHUP]:
    signal.signal(s, lambda *_: None)
while True:
    pass
