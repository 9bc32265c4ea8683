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
#[test]
fn passes_the_shared_cases_of_rates() {
    let Ok(folder) = std::env::var("CASES") else {
        return;
    };
    let text = std::fs::read_to_string(format!("{folder}/rate/cases.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let cases = file["cases"].as_array().unwrap();
    for case in cases {
        let number = |name: &str| case[name].as_f64().unwrap();
        let limit = Limit::new(number("rate"), milliseconds(&case["unit"]));
        let limiter = RateLimiter::new(limit.burst(number("burst"))).unwrap();
        for step in case["steps"].as_array().unwrap() {
            let function = match step["do"].as_str().unwrap() {
                "take" => "rate_take",
                "peek" => "rate_peek",
                _ => "rate_charge",
            };
            let amount = step["amount"].as_f64().unwrap();
            let decision = limiter
                .call(function, b"key", amount, milliseconds(&step["at"]))
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
    }
    println!("cases: {}", cases.len());
}
