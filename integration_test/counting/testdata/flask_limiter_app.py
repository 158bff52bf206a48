"""Flask-Limiter on an app with limits of its own, of two routes and of a shared scope."""

from flask import Flask, request
from flask_limiter import Limiter

from facts import LIMIT, URL, play_web


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

    play_web(strategy, limiter, get)
