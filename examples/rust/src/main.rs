// Asks celld whether one more call of a key may pass, with the redis crate: cargo run.
fn main() -> redis::RedisResult<()> {
    let address = std::env::var("ADDR").unwrap_or("127.0.0.1:6379".into());
    let mut client = redis::Client::open(format!("redis://{address}/"))?.get_connection()?;

    // 30 calls a minute, 15 more at once.
    let (limited, _limit, remaining, retry_after, _reset_after): (bool, i64, i64, i64, i64) = redis::cmd("CL.THROTTLE")
        .arg("user:42").arg(15).arg(30).arg(60).arg(1)
        .query(&mut client)?;
    if limited {
        println!("try again in {retry_after} s");
    } else {
        println!("allowed, {remaining} left");
    }
    Ok(())
}
