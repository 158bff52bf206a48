"""Flask-Limiter on an app with limits of its own, of two routes and of a shared scope."""

import time

from flask import Flask, request
from flask_limiter import Limiter

from facts import LIMIT, URL, at_once, decide, end_windows, keys, seconds, value


def app_of(strategy):
    app = Flask(__name__)
    limiter = Limiter(
        lambda: request.headers["X-User"],
        app=app,
        application_limits=["1000/day"],
        storage_uri=URL,
        strategy=strategy,
        headers_enabled=True,
        key_prefix=strategy,
    )

    @app.route("/three")
    @limiter.limit("3/hour")
    def three():
        return "three"

    @app.route("/costly")
    @limiter.limit("10/hour", cost=lambda: int(request.args["cost"]))
    def costly():
        return "costly"

    shared = limiter.shared_limit("2/hour", scope="shared")
    app.add_url_rule("/one", "one", shared(lambda: "one"))
    app.add_url_rule("/other", "other", shared(lambda: "other"))

    @app.route("/many")
    @limiter.limit(f"{LIMIT}/hour")
    def many():
        return "many"

    return app, limiter


for strategy in ("fixed-window", "sliding-window-counter"):
    app, limiter = app_of(strategy)

    def get(path, user="a"):
        reply = app.test_client().get(path, headers={"X-User": user})
        assert reply.status_code in (200, 429), reply.text
        get.headers = reply.headers
        return reply.status_code == 200

    for call in range(5):
        decide(strategy, get("/three"))
        value(f"{strategy}, call {call}", [get.headers["X-RateLimit-Limit"], get.headers["X-RateLimit-Remaining"]])
        seconds(f"{strategy}, call {call}, reset", int(get.headers["X-RateLimit-Reset"]) - time.time())
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
