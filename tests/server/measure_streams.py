#!/usr/bin/env python3
"""Measures `fixpoint serve` on loopback: the time from the engine's output to the socket, and memory per idle connection.

    tests/server/measure_streams.py build/release/cli/fixpoint MODEL.gguf [--idle 1000] [--streams 8] [--tokens 400]

Prints one JSON object. The latencies are bounds of the histogram fixpoint_event_latency_seconds.
"""
import argparse
import json
import re
import resource
import socket
import subprocess
import tempfile
import threading

parser = argparse.ArgumentParser()
parser.add_argument("fixpoint")
parser.add_argument("model")
parser.add_argument("--idle", type=int, default=1000)
parser.add_argument("--streams", type=int, default=8)
parser.add_argument("--tokens", type=int, default=400)
options = parser.parse_args()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def resident(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024


def request(port, method, path, body=None):
    data = b"" if body is None else json.dumps(body).encode()
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    out = b""
    while piece := sock.recv(65536):
        out += piece
    return out


with tempfile.TemporaryDirectory() as folder:
    server = subprocess.Popen([options.fixpoint, "serve", "-m", options.model, "--listen", "127.0.0.1:0", "--log", "", "--journal", folder + "/j.db",
                               "--threads", "1", "--kv-memory", "64M", "--max-connections-per-address", "4000", "--head-timeout", "600"],
                              stderr=subprocess.PIPE, text=True)
    port = 0
    for line in server.stderr:
        if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)", line):
            port = int(found[1])
        if "ready" in line:
            break
    request(port, "GET", "/health")
    before = resident(server.pid)
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(options.idle)]
    for sock in idle:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        sock.recv(4096)
    with_idle = resident(server.pid)
    body = {"prompt": "return the", "max_tokens": options.tokens, "ignore_eos": True, "stream": True, "temperature": 0}
    threads = [threading.Thread(target=request, args=(port, "POST", "/v1/completions", body)) for _ in range(options.streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = request(port, "GET", "/metrics").decode()
    buckets = [(float(bound), int(count)) for bound, count in re.findall(r'event_latency_seconds_bucket\{le="([^"]+)"\} (\d+)', text)]
    total = buckets[-1][1]
    quantile = lambda q: next(bound for bound, count in buckets if count >= q * total)
    print(json.dumps({"events": total, "latency_p50_below_ms": quantile(0.5) * 1e3, "latency_p99_below_ms": quantile(0.99) * 1e3,
                      "idle_connections": options.idle, "bytes_per_idle_connection": (with_idle - before) // max(1, options.idle),
                      "streams": options.streams}))
    server.terminate()
    server.wait()
