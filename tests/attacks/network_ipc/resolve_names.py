# @attack asks the name service
# @expect held
import socket

try:
    print("ESCAPED:", socket.getaddrinfo("example.com", 80))
except OSError:
    print("held")
