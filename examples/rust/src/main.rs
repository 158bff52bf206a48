//! A service that asks celld before it answers, with redis-rs. Start it, and call it until it refuses:
//!
//!     go -C examples run ./try cargo run --manifest-path rust/Cargo.toml
//!     curl -i http://127.0.0.1:8080/

use std::env;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::get};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Cmd, FromRedisValue, RedisResult, cmd};

/// The most that a request waits for the limiter to connect, or to answer, which takes well under a millisecond on the
/// same host.
const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Clone)]
struct Limiter {
    connection: ConnectionManager,
    down: Arc<AtomicBool>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = env::var("RATE_LIMITER").unwrap_or("redis://127.0.0.1:6379".into());
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE))
        .set_number_of_retries(0); // the next call is the next try
    let limiter = Limiter {
        connection: ConnectionManager::new_lazy_with_config(Client::open(url)?, config)?,
        down: Arc::default(),
    };
    let service = Router::new()
        .route("/", get(hello))
        .route("/login", get(login))
        .with_state(limiter)
        .into_make_service_with_connect_info::<SocketAddr>();
    let listen = env::var("LISTEN").unwrap_or("127.0.0.1:8080".into()); // in a container 0.0.0.0:8080
    let listener = tokio::net::TcpListener::bind(listen).await?;
    println!("listening on http://{}/", listener.local_addr()?);
    Ok(axum::serve(listener, service).await?)
}

/// Its limit protects the service from overload. Without the limiter it lets everybody in: better a service that is busy than
/// one that is down because of its limiter.
async fn hello(limiter: State<Limiter>, peer: ConnectInfo<SocketAddr>) -> Response {
    // 10 a minute, all at once if need be. Further limits may follow: "10/1m", "100/1h". Times are milliseconds.
    let key = format!("ip:{}", peer.ip());
    match limiter.ask::<(bool, i64, i64, f64, f64, i64, i64)>(cmd("CL.TAKE").arg(key).arg("10/1m")).await {
        Ok((limited, limit, remaining, retry_ms, reset_ms, _granted, _wait)) => {
            verdict("hello", "hello\n", limited, limit, remaining, retry_ms / 1000.0, reset_ms / 1000.0)
        }
        Err(_) => "hello\n".into_response(),
    }
}

/// Its limit stops people from guessing passwords. Without the limiter nobody may log in.
async fn login(limiter: State<Limiter>, peer: ConnectInfo<SocketAddr>) -> Response {
    // 5 a minute, and 4 + 1 of them at once. Times are seconds.
    let key = format!("login:{}", peer.ip());
    match limiter.ask::<(bool, i64, i64, f64, f64)>(cmd("CL.THROTTLE").arg(key).arg(4).arg(5).arg(60)).await {
        Ok((limited, limit, remaining, retry_after, reset_after)) => {
            verdict("login", "welcome\n", limited, limit, remaining, retry_after, reset_after)
        }
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "try again later\n").into_response(),
    }
}

impl Limiter {
    /// Logs when it loses the limiter and when the limiter is back, not at each call.
    async fn ask<Reply: FromRedisValue>(&self, call: &Cmd) -> RedisResult<Reply> {
        let reply = call.query_async(&mut self.connection.clone()).await;
        if self.down.swap(reply.is_err(), Ordering::Relaxed) != reply.is_err() {
            match &reply {
                Ok(_) => eprintln!("rate limiter: answers again"),
                Err(error) => eprintln!("rate limiter: {error}"),
            }
        }
        reply
    }
}

fn verdict(name: &str, text: &'static str, limited: bool, limit: i64, remaining: i64, retry_after: f64, reset_after: f64) -> Response {
    // Both limits are for a minute.
    let policy = format!("\"{name}\";q={limit};w=60");
    let state = format!("\"{name}\";r={remaining};t={}", reset_after.ceil() as u64);
    let headers = [("RateLimit-Policy", policy), ("RateLimit", state)];
    if !limited {
        return (headers, text).into_response();
    }
    let mut response = (StatusCode::TOO_MANY_REQUESTS, headers, "too many requests\n").into_response();
    if retry_after >= 0.0 {
        // below 0: it will never pass, for example because a rule denies it
        response.headers_mut().insert("Retry-After", HeaderValue::from(retry_after.ceil() as u64));
    }
    response
}
