"""A service that asks celld before it answers, with redis-py. Start it, and call it until it refuses:

pip install -r examples/python/requirements.txt
go -C examples run ./try python3 python/service.py
curl -i http://127.0.0.1:8080/
"""

import logging
import math
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

# Half a second is the most that a request waits for the limiter to connect, or to answer, which takes well under a
# millisecond on the same host. No retries: a call whose reply was lost may have counted, and a second try would count twice.
limiter = redis.Redis.from_url(
    os.environ.get("RATE_LIMITER", "redis://127.0.0.1:6379"),
    socket_connect_timeout=0.5,
    socket_timeout=0.5,
    retry=Retry(NoBackoff(), 0),
)
down = False


def ask(*command):
    """Returns the reply, or None without a limiter. Logs when it loses the limiter and when the limiter is back."""
    global down
    try:
        reply, error = limiter.execute_command(*command), None
    except redis.RedisError as e:
        reply, error = None, e
    if down != bool(error):
        down = bool(error)
        logging.warning("rate limiter: %s", error or "answers again")
    return reply


class Service(BaseHTTPRequestHandler):
    def do_GET(self):
        address = self.client_address[0]  # behind a proxy, use the address that the proxy reports
        if self.path == "/login":
            self.login(address)
        else:
            self.hello(address)

    def hello(self, address):
        """Its limit protects the service from overload. Without the limiter it lets everybody in: better a service that
        is busy than one that is down because of its limiter."""
        # 10 a minute, all at once if need be. Further limits may follow: "10/1m", "100/1h". Times are milliseconds.
        reply = ask("CL.TAKE", f"ip:{address}", "10/1m")
        if reply is None:
            return self.answer(200, "hello")
        limited, limit, remaining, retry_ms, reset_ms, granted, wait = reply
        self.verdict("hello", "hello", limited, limit, remaining, retry_ms / 1000, reset_ms / 1000)

    def login(self, address):
        """Its limit stops people from guessing passwords. Without the limiter nobody may log in."""
        # 5 a minute, and 4 + 1 of them at once. Times are seconds.
        reply = ask("CL.THROTTLE", f"login:{address}", 4, 5, 60)
        if reply is None:
            return self.answer(503, "try again later")
        limited, limit, remaining, retry_after, reset_after = reply
        self.verdict("login", "welcome", limited, limit, remaining, retry_after, reset_after)

    def verdict(self, name, text, limited, limit, remaining, retry_after, reset_after):
        headers = {  # both limits are for a minute
            "RateLimit-Policy": f'"{name}";q={limit};w=60',
            "RateLimit": f'"{name}";r={remaining};t={math.ceil(reset_after)}',
        }
        if not limited:
            return self.answer(200, text, headers)
        if retry_after >= 0:  # below 0: it will never pass, for example because a rule denies it
            headers["Retry-After"] = math.ceil(retry_after)
        self.answer(429, "too many requests", headers)

    def answer(self, status, text, headers={}):
        body = (text + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *args):
        pass


if __name__ == "__main__":
    host, _, port = os.environ.get("LISTEN", "127.0.0.1:8080").rpartition(":")  # in a container 0.0.0.0:8080
    server = ThreadingHTTPServer((host, int(port)), Service)
    print(f"listening on http://{host}:{server.server_port}/", flush=True)
    server.serve_forever()
