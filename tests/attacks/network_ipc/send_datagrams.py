# @attack sends datagrams without asking for an answer
# @expect held
import socket

sent = 0
for address in ["127.0.0.1", "255.255.255.255", "224.0.0.1", "8.8.8.8"]:
    try:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.sendto(b"secret", (address, 53))
        sent += 1
    except OSError:
        pass
print("ESCAPED" if sent else "held")
