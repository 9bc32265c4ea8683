//! sluice-embedding core.wasm core.abi.json test/core: runs the case files, prints one JSON document.
//! Vocabularies lie beside core.wasm.

mod bodies;
mod core;
mod heads;
mod routes;
mod texts;
mod tokens;

use crate::bodies::{Body, read_body};
use crate::core::{Code, Core, Failure};
use crate::heads::{latin1, read_head};
use crate::routes::Routes;
use crate::texts::{bytes_of, mask_problem, tokens_problem};
use serde_json::{Value, json};
use wasmtime::Val;

/// What is wrong about a case.
pub type Problem = Option<String>;

pub fn text<'a>(case: &'a Value, key: &str) -> &'a str {
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

fn regex_problem(core: &mut Core, case: &Value) -> Problem {
    let compiled = core.compile(text(case, "pattern"), 0);
    if let Some(name) = case["code"].as_str() {
        let wanted = Code(core.abi[name], case["offset"].as_i64().unwrap_or(-1) as i32);
        return (compiled != Err(wanted)).then(|| format!("{compiled:?}"));
    }
    let regex = match compiled {
        Ok(regex) => regex,
        Err(code) => return Some(format!("{code:?}")),
    };
    let bytes = bytes_of(case, "text", "hex");
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

/// Whole, cut at every byte, and everywhere at once.
fn body_problem(core: &mut Core, case: &Value) -> Problem {
    let bytes = latin1(text(case, "bytes"));
    let end = ["CHUNKS_END", "CHUNKS_MORE"][usize::from(case["open"] == true)];
    let flags = case["flags"].as_array().into_iter().flatten();
    let mut wanted = Body {
        code: core.abi[end],
        data: text(case, "data").into(),
        trailers: text(case, "trailers").into(),
        rest: text(case, "rest").into(),
        flags: flags
            .filter_map(|flag| Some(flag.as_str()?.into()))
            .collect(),
    };
    wanted.flags.sort_unstable();
    let all: Vec<usize> = (0..bytes.len().min(200)).collect();
    let single = all.iter().map(|cut| vec![*cut]);
    for cuts in [vec![], all.clone()].into_iter().chain(single) {
        let seen = read_body(core, &bytes, &cuts, 256);
        let is_right = match core.abi.get(text(case, "refused")) {
            Some(code) => seen.code == *code,
            None => seen == wanted,
        };
        if !is_right {
            return Some(format!("{seen:?} when cut at {:?}", cuts.first()));
        }
    }
    None
}

fn route_problem(core: &mut Core, case: &Value) -> Problem {
    let mut routes = match Routes::new(core) {
        Ok(routes) => routes,
        Err(code) => return Some(format!("{code:?}")),
    };
    let any = json!([["", 0]]);
    let listeners = case.get("listeners").unwrap_or(&any);
    for listener in listeners.as_array().into_iter().flatten() {
        let scope = listener[1].as_i64().unwrap_or(0) as i32;
        if let Err(code) = routes.add_listener(core, listener[0].as_str()?, scope) {
            return Some(format!("{code:?}"));
        }
    }
    for route in case["routes"].as_array().into_iter().flatten() {
        if let Err(code) = routes.add_route(core, route) {
            return Some(format!("{route}: {code:?}"));
        }
    }
    let requests = case["requests"].as_array().cloned().unwrap_or_default();
    let wrong = requests.iter().find(|request| {
        let wanted = match request["expect"].as_str() {
            Some(name) => core.abi[name],
            None => request["expect"].as_i64().unwrap_or(-1) as i32,
        };
        routes.matches(core, request) != wanted
    });
    routes.free(core);
    wrong.map(ToString::to_string)
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
    let suites: [(&str, fn(&mut Core, &Value) -> Problem); 7] = [
        ("heads", head_problem),
        ("chunks", body_problem),
        ("regex/cases", regex_problem),
        ("regex/masks", mask_problem),
        ("routes", route_problem),
        ("tokens/cases", tokens_problem),
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
