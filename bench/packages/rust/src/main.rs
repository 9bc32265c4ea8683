//! Measures the candidates of bench/packages/rust.ts, in the texts of a folder.

#[cfg(feature = "peers")]
use regex::{Captures, NoExpand, Regex};
#[cfg(feature = "core")]
use sluice_core::{Builtin, Mask, count_tokens};
use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::io::BufRead;

#[cfg(feature = "peers")]
fn has_luhn(text: &str) -> bool {
    let digits = text.bytes().rev().filter(u8::is_ascii_digit);
    let sum: u32 = digits
        .enumerate()
        .map(
            |(index, digit)| match (index % 2, u32::from(digit - b'0')) {
                (0, value) => value,
                (_, value) if value > 4 => value * 2 - 9,
                (_, value) => value * 2,
            },
        )
        .sum();
    sum % 10 == 0
}

/// Masks with the crate `regex`. Classes are those of ASCII, which is faster.
#[cfg(feature = "peers")]
fn through_regex(folder: &str) -> impl Fn(&str) -> String + use<> {
    let text = read_to_string(format!("{folder}/rules.json")).unwrap();
    let raw: Vec<(String, String, bool)> = serde_json::from_str(&text).unwrap();
    let compile = |(source, name, is_checked): (String, String, bool)| {
        (
            Regex::new(&format!("(?-u){source}")).unwrap(),
            name,
            is_checked,
        )
    };
    let rules: Vec<_> = raw.into_iter().map(compile).collect();
    move |text| {
        let mut masked = text.to_owned();
        for (pattern, name, is_checked) in &rules {
            let checked = |found: &Captures| {
                let replacement = if has_luhn(&found[0]) { name } else { &found[0] };
                replacement.to_owned()
            };
            masked = if *is_checked {
                pattern.replace_all(&masked, checked).into_owned()
            } else {
                pattern.replace_all(&masked, NoExpand(name)).into_owned()
            };
        }
        masked
    }
}

fn process_time() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to `time` alone.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(code, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// MB in a second of CPU time; repeats the work until it has taken `least` seconds.
fn speed(work: impl Fn(), size: usize, least: f64) -> f64 {
    let (begun, mut spent, mut times) = (process_time(), 0.0, 0);
    while spent <= least {
        work();
        times += 1;
        spent = process_time() - begun;
    }
    (size * times) as f64 / spent / 1e6
}

type Work<T> = Box<dyn Fn(&str) -> T>;

fn main() {
    let folder = std::env::args().nth(1).unwrap();
    let mut counters: BTreeMap<&str, Work<usize>> = BTreeMap::new();
    let mut masks: BTreeMap<&str, Work<String>> = BTreeMap::new();
    #[cfg(feature = "core")]
    {
        let count = |text: &str| count_tokens(text, "gpt-4o").unwrap() as usize;
        counters.insert("sluice", Box::new(count));
        let numbers = [
            Builtin::Ssn,
            Builtin::CreditCard,
            Builtin::PhoneNumber,
            Builtin::CanadaSin,
        ];
        let mask = Mask::new([Builtin::Email].into_iter().chain(numbers)).unwrap();
        masks.insert("sluice", Box::new(move |text| mask.mask(text).unwrap()));
    }
    #[cfg(feature = "peers")]
    {
        let encoding = tiktoken_rs::o200k_base().unwrap();
        let count = move |text: &str| encoding.encode_ordinary(text).len();
        counters.insert("tiktoken-rs", Box::new(count));
        masks.insert("regex", Box::new(through_regex(&folder)));
    }
    let names: Vec<_> = counters.keys().chain(masks.keys()).copied().collect();
    println!("{}", names.join(" "));
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<_> = line.split(' ').collect();
        let [candidate, task, kind, turn] = words[..] else {
            panic!("{line}")
        };
        let read = |name: String| read_to_string(format!("{folder}/{name}")).unwrap();
        if task == "tokens" {
            let count = &counters[candidate];
            let (warm, text) = (
                read(format!("tokens.{kind}.0")),
                read(format!("tokens.{kind}.{turn}")),
            );
            (0..3).for_each(|_| drop(count(&warm)));
            println!(
                "{} {}",
                speed(|| drop(count(&text)), text.len(), 0.0),
                count(&text)
            );
        } else {
            let text = read(format!("mask.{kind}"));
            println!(
                "{} 0",
                speed(|| drop(masks[candidate](&text)), text.len(), 0.05)
            );
        }
    }
}
