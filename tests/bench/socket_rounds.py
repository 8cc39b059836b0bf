"""Two processes send each other bytes by one TCP connection, both ways at once: the fastest that a
network can exchange gradients of two machines.

    socket_rounds.py RANK ADDRESS PORT BYTES ROUNDS

Rank 0 listens. It prints one JSON object: the seconds of each round, and the processor time of its
process. A round ends when both ranks have received everything."""
import json
import socket
import sys
import threading
import time


def connect(rank, address, port):
    if rank == 0:
        with socket.create_server((address, port)) as server:
            server.settimeout(30)
            return server.accept()[0]
    for _ in range(300):
        try:
            return socket.create_connection((address, port))
        except OSError:
            time.sleep(0.1)
    sys.exit(f"socket_rounds: nobody listens at {address}:{port}")


def receive(connection, into, size):
    view, at = memoryview(into), 0
    while at < size:
        got = connection.recv_into(view[at:size])
        if got == 0:
            sys.exit("socket_rounds: the other process has ended")
        at += got


def main():
    rank, address, port, size, rounds = (f(v) for f, v in zip((int, str, int, int, int),
                                                              sys.argv[1:]))
    connection, times, cpu = connect(rank, address, port), [], []
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    out, into, token = bytearray(size), bytearray(size), bytearray(1)
    for i in range(-1, rounds):  # the first round is not counted
        connection.sendall(token)
        receive(connection, token, 1)
        start, begun = time.perf_counter(), time.process_time()
        sender = threading.Thread(target=connection.sendall, args=(out,))
        sender.start()
        receive(connection, into, size)
        sender.join()
        connection.sendall(token)
        receive(connection, token, 1)
        if i >= 0:
            times.append(time.perf_counter() - start)
            cpu.append(time.process_time() - begun)
    if rank == 0:
        print(json.dumps({"ranks": 2, "seconds": times, "cpu": cpu}))


if __name__ == "__main__":
    main()
