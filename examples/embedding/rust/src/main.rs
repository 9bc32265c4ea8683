//! sluice-embedding core.wasm core.abi.json test/core: runs the case files, prints one JSON document.

mod core;
mod heads;

use crate::core::{Code, Core, Failure};
use crate::heads::{latin1, read_head};
use serde_json::{Value, json};
use wasmtime::Val;

/// What is wrong about a case.
type Problem = Option<String>;

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or("")
}

fn head_problem(core: &mut Core, case: &Value) -> Problem {
    let limit = |key: &str, default: i64| case[key].as_i64().unwrap_or(default) as i32;
    let (message, bytes) = (text(case, "message"), latin1(text(case, "bytes")));
    let (max_bytes, max_fields) = (limit("maxBytes", 65536), limit("maxFields", 100));
    let (code, head) = read_head(core, message, &bytes, max_bytes, max_fields);
    let wanted = match core.abi.get(text(case, "refused")) {
        Some(code) if message == "response" => core.abi["ERROR_RESPONSE"] - (-code % 100),
        Some(code) => *code,
        None => 0,
    };
    if code != wanted {
        return Some(format!("code {code} instead of {wanted}"));
    }
    for (key, value) in case["expect"].as_object().into_iter().flatten() {
        let mut expected = value.clone();
        if key == "flags" {
            expected.as_array_mut()?.sort_by_key(ToString::to_string);
        }
        if head[key] != expected {
            return Some(format!("{key} is {}", head[key]));
        }
    }
    None
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[i * 2..i * 2 + 2], 16).unwrap_or(0))
        .collect()
}

fn regex_problem(core: &mut Core, case: &Value) -> Problem {
    let compiled = core.compile(text(case, "pattern"));
    if let Some(name) = case["code"].as_str() {
        let wanted = Code(core.abi[name], case["offset"].as_i64().unwrap_or(-1) as i32);
        return (compiled != Err(wanted)).then(|| format!("{compiled:?}"));
    }
    let regex = match compiled {
        Ok(regex) => regex,
        Err(code) => return Some(format!("{code:?}")),
    };
    let bytes = case["hex"]
        .as_str()
        .map_or_else(|| text(case, "text").as_bytes().to_vec(), unhex);
    let spans = core.find_all(regex, &bytes, 1024);
    let is_match = core.test("regex_is_match", regex, &bytes);
    let is_full = core.test("regex_full_match", regex, &bytes);
    core.call("regex_free", &[Val::I32(regex)]);
    match spans {
        Ok(found) if json!(found) == case["spans"] && is_match != found.is_empty() => {
            (case["full"].as_bool().unwrap_or(is_full) != is_full)
                .then(|| "full_match differs".into())
        }
        other => Some(format!("{other:?}, is_match {is_match}")),
    }
}

const BUILTINS: [(&str, &str); 5] = [
    ("DETECT_SSN", "<SSN>"),
    ("DETECT_CARD", "<CREDIT_CARD>"),
    ("DETECT_PHONE", "<PHONE_NUMBER>"),
    ("DETECT_EMAIL", "<EMAIL_ADDRESS>"),
    ("DETECT_SIN", "<CA_SIN>"),
];

fn mask_problem(core: &mut Core, case: &Value) -> Problem {
    let set = match core.new_mask(&BUILTINS) {
        Ok(set) => set,
        Err(code) => return Some(format!("{code:?}")),
    };
    let bytes = text(case, "text").as_bytes();
    let (left, right) = bytes.split_at(bytes.len() / 2);
    let outcomes = [core.mask(set, &[bytes]), core.mask(set, &[left, right])];
    core.call("mask_free", &[Val::I32(set)]);
    let wanted = Ok(text(case, "masked").to_string());
    outcomes
        .iter()
        .any(|outcome| *outcome != wanted)
        .then(|| format!("{outcomes:?}"))
}

/// Random enough for an example: the hasher of this process.
fn secret() -> [u8; 16] {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one(0).to_le_bytes();
    [half(), half()].concat().try_into().expect("16 bytes")
}

fn rate_problem(core: &mut Core, case: &Value) -> Problem {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let sizes = [Val::I32(4), Val::I32(48)];
    let size = core.call("rate_size", &sizes);
    let table = Val::I32(core.call("block_new", &[Val::I32(size)]));
    let period = number(&case["unit"]) / number(&case["rate"]);
    let capacity = number(&case["rate"]) + number(&case["burst"]);
    let problem = core.scratch(|core| {
        let [secret, _] = core.put(&secret());
        core.call("rate_format", &[table, sizes[0], sizes[1], secret]);
        let out = core.alloc(core.abi["RATE_SIZE"] as usize);
        let [key, length] = core.put(b"key");
        case["steps"]
            .as_array()
            .into_iter()
            .flatten()
            .find_map(|step| {
                let demand = [
                    period,
                    capacity,
                    number(&step["amount"]),
                    number(&step["at"]),
                ];
                let mut arguments = vec![table, Val::I32(1), key, length];
                arguments.extend(demand.map(Val::from));
                arguments.push(Val::I32(out as i32));
                let answer = core.call(&format!("rate_{}", text(step, "do")), &arguments);
                let [wait, remaining, reset] = [0, 8, 16].map(|offset| core.double(out + offset));
                let near = |key: &str, seen: f64| {
                    step[key]
                        .as_f64()
                        .is_none_or(|wanted| (wanted - seen).abs() < 1e-4)
                };
                let is_right = answer >= 0
                    && step["is"]
                        .as_bool()
                        .is_none_or(|wanted| wanted == (answer == 1))
                    && near("remaining", remaining)
                    && near("reset", reset)
                    && near("wait", wait)
                    && (step["wait"] != "never" || wait.is_infinite());
                (!is_right).then(|| format!("{step}: {answer}, {wait}, {remaining}, {reset}"))
            })
    });
    core.call("block_free", &[table]);
    problem
}

fn read_cases(folder: &str) -> Result<Vec<Value>, Failure> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.sort();
    let mut cases = vec![];
    for path in paths {
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let list = if file.is_array() {
            &file
        } else {
            &file["cases"]
        };
        cases.extend(list.as_array().ok_or("no cases")?.iter().cloned());
    }
    Ok(cases)
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, wasm, abi, folder] = &arguments[..] else {
        return Err("usage: sluice-embedding core.wasm core.abi.json test/core".into());
    };
    let mut core = Core::open(wasm, abi)?;
    let suites: [(&str, fn(&mut Core, &Value) -> Problem); 4] = [
        ("heads", head_problem),
        ("regex/cases", regex_problem),
        ("regex/masks", mask_problem),
        ("rate", rate_problem),
    ];
    let (mut run, mut failures) = (serde_json::Map::new(), vec![]);
    for (name, problem_of) in suites {
        let cases = read_cases(&format!("{folder}/{name}"))?;
        run.insert(name.into(), cases.len().into());
        for case in &cases {
            if let Some(problem) = problem_of(&mut core, case) {
                let title = ["title", "name", "pattern"]
                    .map(|key| text(case, key))
                    .join(" ");
                failures.push(format!("{name}: {title}: {problem}"));
            }
        }
    }
    println!("{}", json!({ "run": run, "failures": failures }));
    std::process::exit(i32::from(!failures.is_empty()))
}
