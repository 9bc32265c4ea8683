use crate::abi;
use crate::error::{Error, Result};
use crate::pool::{Object, Pool};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::Val;

const MAX_KEY_BYTES: i32 = 256;
/// First byte of a digest. UTF-8 never begins with it.
const DIGEST_MARK: u8 = 0xff;
/// 36 years in milliseconds. The core cannot count a refill of one unit that takes longer.
const MAX_PERIOD: f64 = 36.0 * 365.0 * 86_400_000.0;

/// Buckets of `rate + burst` units, which refill evenly by `rate` in `per`.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    rate: f64,
    per: Duration,
    burst: f64,
    keys: usize,
}

impl Limit {
    /// Without a burst, and with room for about 10,000 buckets.
    pub fn new(rate: f64, per: Duration) -> Limit {
        Limit {
            rate,
            per,
            burst: 0.0,
            keys: 10_000,
        }
    }

    /// Adds to the capacity of a bucket.
    pub fn burst(self, burst: f64) -> Limit {
        Limit { burst, ..self }
    }

    /// About the number of buckets that there may be.
    pub fn keys(self, keys: usize) -> Limit {
        Limit { keys, ..self }
    }
}

/// What a limiter decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    pub allowed: bool,
    /// The time until the request can be repeated; `None` if the bucket can never hold the amount.
    pub wait: Option<Duration>,
    /// Units that are left.
    pub remaining: f64,
    /// The time until the bucket is full again.
    pub reset: Duration,
}

/// Limits the rate of requests or tokens, with one bucket for each key.
#[derive(Clone)]
pub struct RateLimiter {
    // The limiter has an instance of its own, so that its calls do not wait for others.
    table: Arc<Object>,
    period: f64,
    capacity: f64,
    start: Instant,
}

impl RateLimiter {
    /// Creates a limiter whose buckets are full.
    pub fn new(limit: Limit) -> Result<RateLimiter> {
        let Limit {
            rate,
            per,
            burst,
            keys,
        } = limit;
        let is_positive = rate > 0.0 && !per.is_zero() && burst >= 0.0 && keys > 0;
        if !is_positive || !(rate + burst).is_finite() {
            return Err(Error::Argument(
                "rate, per and keys must be positive, burst must not be negative, and all must be finite",
            ));
        }
        let period = per.as_secs_f64() * 1000.0 / rate;
        if !(period > 0.0 && period <= MAX_PERIOD) {
            let reason = "per / rate, the time in which one unit returns, must be at most 36 years";
            return Err(Error::Argument(reason));
        }
        // 32 buckets in a group; half of them stay free, so that groups of unequal size have room.
        let groups = ((keys.min(1 << 24) * 2).div_ceil(32).next_power_of_two() as i32).min(65_536);
        let table = Object::new(&Pool::of_core(1), "block_free", move |core| {
            let shape = [Val::I32(groups), Val::I32(MAX_KEY_BYTES)];
            let size = core.checked("creating a limiter", "rate_size", &shape)?;
            let table = core.block(size as usize)?;
            let mut secret = [0; 16];
            getrandom::fill(&mut secret).map_err(|_| Error::Argument("no random numbers"))?;
            let [place, _] = core.put(&secret)?;
            let arguments = [&[Val::I32(table as i32)], &shape[..], &[place]].concat();
            core.checked("creating a limiter", "rate_format", &arguments)?;
            Ok(table as i32)
        })?;
        Ok(RateLimiter {
            table,
            period,
            capacity: rate + burst,
            start: Instant::now(),
        })
    }

    /// Takes units from the bucket of a key if the bucket has them. A key may have any length. If the table
    /// has no room for another bucket, the request is not allowed.
    pub fn take(&self, key: impl AsRef<[u8]>, amount: f64) -> Result<Decision> {
        self.call("rate_take", key.as_ref(), amount, self.start.elapsed())
    }

    /// What [`RateLimiter::take`] would return.
    pub fn peek(&self, key: impl AsRef<[u8]>, amount: f64) -> Result<Decision> {
        self.call("rate_peek", key.as_ref(), amount, self.start.elapsed())
    }

    /// Takes units after the fact; the balance may become negative. A negative amount gives units back.
    pub fn charge(&self, key: impl AsRef<[u8]>, amount: f64) -> Result<Decision> {
        self.call("rate_charge", key.as_ref(), amount, self.start.elapsed())
    }

    /// `now` is the time since the limiter was created.
    pub(crate) fn call(
        &self,
        function: &'static str,
        key: &[u8],
        amount: f64,
        now: Duration,
    ) -> Result<Decision> {
        self.table.run(|core, table| {
            let [place, length] = core.put(&bucket_key(key))?;
            let out = core.alloc(abi::RATE_SIZE as usize)?;
            let now = now.as_secs_f64() * 1000.0;
            let [period, capacity, amount, now] =
                [self.period, self.capacity, amount, now].map(|number| Val::F64(number.to_bits()));
            let (table, out_address) = (Val::I32(table), Val::I32(out as i32));
            let bucket = [table, Val::I32(1), place, length];
            let demand = [period, capacity, amount, now, out_address];
            let answer = core.call(function, &[&bucket[..], &demand[..]].concat())?;
            if answer == abi::RATE_FULL {
                return Ok(Decision {
                    allowed: false,
                    wait: duration(self.period),
                    remaining: 0.0,
                    reset: Duration::ZERO,
                });
            }
            if answer < 0 {
                return Err(Error::core("limiting", answer));
            }
            Ok(Decision {
                allowed: answer == 1,
                wait: duration(core.double(out + abi::RATE_WAIT as u32)?),
                remaining: core.double(out + abi::RATE_REMAINING as u32)?,
                reset: duration(core.double(out + abi::RATE_RESET as u32)?)
                    .unwrap_or(Duration::MAX),
            })
        })
    }
}

/// The key, or its digest if it is too long for the table or looks like a digest.
fn bucket_key(key: &[u8]) -> Cow<'_, [u8]> {
    let looks_like_digest = key.len() == 33 && key[0] == DIGEST_MARK;
    if key.len() <= MAX_KEY_BYTES as usize && !looks_like_digest {
        return Cow::Borrowed(key);
    }
    let mut digest = vec![DIGEST_MARK];
    digest.extend_from_slice(&Sha256::digest(key));
    Cow::Owned(digest)
}

/// Rounds up, so that a request after this time is not early.
fn duration(milliseconds: f64) -> Option<Duration> {
    let nanoseconds = (milliseconds * 1e6).ceil();
    (nanoseconds < u64::MAX as f64).then(|| Duration::from_nanos(nanoseconds as u64))
}

#[cfg(test)]
#[path = "limiter_test.rs"]
mod tests;
