use super::{Limit, RateLimiter};
use serde_json::Value;
use std::time::Duration;

fn milliseconds(value: &Value) -> Duration {
    Duration::from_secs_f64(value.as_f64().unwrap_or(0.0) / 1000.0)
}

fn is_near(wanted: &Value, found: Option<Duration>) -> bool {
    match (wanted, found) {
        (Value::Null, _) => true,
        (Value::String(_), found) => found.is_none(),
        (wanted, Some(found)) => milliseconds(wanted).abs_diff(found) < Duration::from_nanos(100),
        _ => false,
    }
}

/// The case files that all hosts share, in the folder that CASES names. They set the clock, which only
/// tests inside of the crate can.
fn run_cases(name: &str) {
    let Ok(folder) = std::env::var("CASES") else {
        return;
    };
    let text = std::fs::read_to_string(format!("{folder}/{name}/cases.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let cases = file["cases"].as_array().unwrap();
    for case in cases {
        let number = |name: &str| case[name].as_f64().unwrap();
        let limit = Limit::new(number("rate"), milliseconds(&case["unit"]));
        match (
            RateLimiter::new(limit.burst(number("burst"))),
            case["error"].as_str(),
        ) {
            (Ok(limiter), None) => case["steps"]
                .as_array()
                .unwrap()
                .iter()
                .for_each(|step| check_step(&limiter, step)),
            (Err(error), Some(wanted)) => assert!(error.to_string().contains(wanted), "{error}"),
            (limiter, _) => panic!("{case}: {:?}", limiter.err()),
        }
    }
    println!("cases: {}", cases.len());
}

fn check_step(limiter: &RateLimiter, step: &Value) {
    let function = match step["do"].as_str().unwrap() {
        "take" => "rate_take",
        "peek" => "rate_peek",
        _ => "rate_charge",
    };
    let repeat = step["key"]["repeat"].as_u64().unwrap_or(1) as usize;
    let key = step["key"]["text"].as_str().unwrap_or("key").repeat(repeat);
    let amount = step["amount"].as_f64().unwrap();
    let decision = limiter
        .call(function, key.as_bytes(), amount, milliseconds(&step["at"]))
        .unwrap();
    let is = step["is"].as_bool().unwrap_or(decision.allowed);
    let remaining = step["remaining"].as_f64().unwrap_or(decision.remaining);
    assert_eq!(
        (is, remaining),
        (decision.allowed, decision.remaining),
        "{step}"
    );
    assert!(
        is_near(&step["wait"], decision.wait),
        "{step}: {decision:?}"
    );
    assert!(
        is_near(&step["reset"], Some(decision.reset)),
        "{step}: {decision:?}"
    );
}

#[test]
fn passes_the_shared_cases_of_rates() {
    run_cases("rate");
}

#[test]
fn passes_the_shared_cases_of_limits() {
    run_cases("limits");
}

#[test]
fn tells_keys_from_digests_of_keys() {
    let limiter = RateLimiter::new(Limit::new(1.0, Duration::from_secs(3600))).unwrap();
    let long = [b'b'; 5000];
    let digest = super::bucket_key(&long).into_owned();
    for key in [&long[..], &digest, &digest[1..]] {
        assert!(limiter.take(key, 1.0).unwrap().allowed);
    }
}
