"""Listens as systemd does on the socket named first, and prints one JSON object of fields per message.

Node has no datagram sockets of this kind. What comes with a message as a descriptor is closed at once: the sender waits for that.
"""
import json
import os
import socket
import sys

listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(sys.argv[1])
print("{}", flush=True)
while True:
    data, descriptors, _, _ = socket.recv_fds(listener, 65536, 8)
    for descriptor in descriptors:
        os.close(descriptor)
    fields = dict(line.split("=", 1) for line in data.decode().splitlines() if line)
    if fields.keys() != {"BARRIER"}:
        print(json.dumps(fields), flush=True)
