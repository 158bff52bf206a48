"""What the scripts of this folder share. Each is run as NAME.py PORT, and prints its facts as one JSON object."""

import atexit
import json
import sys
import threading
import time

import redis

PORT = int(sys.argv[1])
CALLERS, LIMIT = 200, 50  # of the calls at once
URL = f"redis://127.0.0.1:{PORT}/0?max_connections={CALLERS + 1}"

db = redis.Redis(port=PORT, decode_responses=True)
facts = {
    "decisions": {},  # for each series of calls: y for each that was let through, n for each that was not
    "values": [],  # what else the library said, in order
    "times": {},  # the seconds until something happens, as the library sees it
    "ttls": {},  # the milliseconds that its keys have left
    "at_once": {},  # how many of the callers at once were let through
}


def decide(series, *passed):
    """Adds decisions to a series."""
    letters = "".join("y" if p else "n" for p in passed)
    facts["decisions"][series] = facts["decisions"].get(series, "") + letters


def value(name, what):
    facts["values"].append([name, what])


def seconds(name, left):
    facts["times"][name] = float(left)


def keys(name):
    """Notes what the server holds now, with the time that each key has left."""
    held = sorted(db.scan_iter())
    value(name + ": keys", [[key, db.get(key)] for key in held])
    for key in held:
        facts["ttls"][f"{name}: {key}"] = db.pttl(key)


def end_windows():
    """Lets all keys expire now, as if their windows were over."""
    for key in db.scan_iter():
        db.pexpire(key, 1)
    deadline = time.monotonic() + 60
    while db.dbsize() and next(db.scan_iter(), None) is not None:
        if time.monotonic() > deadline:
            sys.exit("the keys do not expire")


def at_once(name, call):
    """Runs call from many threads at the same moment. It returns whether it was let through."""
    ready, passed, errors = threading.Barrier(CALLERS), [], []

    def run():
        ready.wait()
        try:
            passed.append(bool(call()))
        except Exception as e:
            errors.append(repr(e))

    threads = [threading.Thread(target=run) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        sys.exit(f"{name}: {len(errors)} calls failed: {errors[0]}")
    assert len(passed) == CALLERS, passed
    facts["at_once"][name] = sum(passed)


def play_web(strategy, limiter, get):
    """Asks an app for paths with limits: /three, /costly, /one and /other that share one, and /many. get leaves the last reply's headers."""
    for call in range(5):
        decide(strategy, get("/three"))
        value(f"{strategy}, call {call}", [get.headers["X-RateLimit-Limit"], get.headers["X-RateLimit-Remaining"]])
        seconds(f"{strategy}, call {call}, reset", float(get.headers["X-RateLimit-Reset"]) - time.time())
        seconds(f"{strategy}, call {call}, retry", int(get.headers["Retry-After"]))
    decide(strategy + ", another", *[get("/three", "b") for _ in range(4)])
    decide(strategy + ", by cost", *[get(f"/costly?cost={n}") for n in (7, 2, 1, 1)])
    decide(strategy + ", shared", get("/one"), get("/other"), get("/one"), get("/other"))
    keys(strategy)
    end_windows()
    decide(strategy + ", next window", *[get("/three") for _ in range(4)])
    limiter.reset()
    keys(strategy + ", reset")
    decide(strategy + ", reset", *[get("/three") for _ in range(4)])
    at_once(strategy, lambda: get("/many", "many"))
    limiter.reset()


atexit.register(lambda: print(json.dumps(facts)))
