// Calls a service behind tower-redis-cell's layer three times, under a limit of one and one more at once: cargo run -- redis://127.0.0.1:6379/
use std::{convert::Infallible, time::Duration};
use tower::{Layer, Service, ServiceExt};
use tower_redis_cell::redis_cell::{Key, Policy};
use tower_redis_cell::{Error, ProvideRule, ProvideRuleResult, RateLimitConfig, RateLimitLayer, Rule};

#[derive(Clone)]
struct ByUser;

impl ProvideRule<String> for ByUser {
    fn provide<'a>(&self, user: &'a String) -> ProvideRuleResult<'a> {
        let policy = Policy::from_tokens_per_period(1, Duration::from_secs(3600)).max_burst(1);
        Ok(Some(Rule::new(Key::pair(user.as_str(), "/api"), policy)))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let address = std::env::args().nth(1).expect("an address");
    let client = redis::Client::open(address).unwrap();
    let connection = redis::aio::ConnectionManager::new(client).await.unwrap();
    let config = RateLimitConfig::new(ByUser, |err, _: &String| match err {
        Error::RateLimit(blocked) => format!("limited, {} s", blocked.details.retry_after),
        err => format!("error: {err}"),
    });
    let service = tower::service_fn(|user: String| async move { Ok::<_, Infallible>(format!("hello {user}")) });
    let mut limited = RateLimitLayer::new(config, connection).layer(service);
    for _ in 0..3 {
        println!("{}", limited.ready().await.unwrap().call("42".into()).await.unwrap());
    }
}
