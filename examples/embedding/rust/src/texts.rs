//! Cases that have a text: masks and tokens.

use crate::core::{Code, Core, Finds, Rule};
use crate::tokens::{count_tokens, encode_tokens, load_vocabulary, read_vocabulary};
use crate::{Problem, text};
use serde_json::{Value, json};
use std::path::Path;
use wasmtime::Val;

const BUILTINS: [(&str, &str); 5] = [
    ("DETECT_SSN", "<SSN>"),
    ("DETECT_CARD", "<CREDIT_CARD>"),
    ("DETECT_PHONE", "<PHONE_NUMBER>"),
    ("DETECT_EMAIL", "<EMAIL_ADDRESS>"),
    ("DETECT_SIN", "<CA_SIN>"),
];

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[i * 2..i * 2 + 2], 16).unwrap_or(0))
        .collect()
}

/// The bytes of a case: a text, hexadecimal (what is not UTF-8) or `units` of UTF-16 (lone surrogates
/// become U+FFFD), `repeat` times.
pub fn bytes_of(case: &Value, text_key: &str, hex_key: &str) -> Vec<u8> {
    let units = case["units"].as_array().filter(|_| text_key == "text");
    let once = match (case[hex_key].as_str(), units) {
        (Some(hex), _) => unhex(hex),
        (None, Some(units)) => {
            let units = units.iter().map(|unit| unit.as_u64().unwrap_or(0) as u16);
            String::from_utf16_lossy(&units.collect::<Vec<u16>>()).into_bytes()
        }
        (None, None) => text(case, text_key).as_bytes().to_vec(),
    };
    once.repeat(case["repeat"].as_u64().unwrap_or(1) as usize)
}

/// Nowhere, in two pieces at every byte, at every byte at once; a long text into some pieces.
fn cuts_of(length: usize) -> Vec<Vec<usize>> {
    let every = |size: usize| (0..length).step_by(size).collect::<Vec<usize>>();
    if length > 400 {
        return vec![vec![], every(7), every(64), every(4096)];
    }
    let single = (0..=length).map(|cut| vec![cut]);
    [vec![], every(1)].into_iter().chain(single).collect()
}

fn rules_of(case: &Value) -> Vec<Rule> {
    let rule = |finds: Finds, replacement: &str| Rule {
        finds,
        replacement: replacement.into(),
    };
    let Some(rules) = case["rules"].as_array() else {
        let builtins = BUILTINS.iter();
        return builtins
            .map(|(name, replacement)| rule(Finds::Builtin((*name).into()), replacement))
            .collect();
    };
    let finds = |each: &Value| match each["builtin"].as_str() {
        None if each["words"].is_array() => {
            let words = each["words"].as_array().unwrap().iter();
            Finds::Words(words.filter_map(Value::as_str).collect::<Vec<_>>().join("\n"))
        }
        Some(name) => Finds::Builtin(name.into()),
        None => Finds::Pattern(text(each, "pattern").into()),
    };
    rules
        .iter()
        .map(|each| rule(finds(each), text(each, "replacement")))
        .collect()
}

pub fn mask_problem(core: &mut Core, case: &Value) -> Problem {
    let set = match core.new_mask(&rules_of(case)) {
        Ok(set) => set,
        Err(code) => return Some(format!("{code:?}")),
    };
    let bytes = bytes_of(case, "text", "hex");
    let wanted = Ok(bytes_of(case, "masked", "maskedHex"));
    let all = cuts_of(bytes.len());
    let wrong = all
        .iter()
        .find(|cuts| core.mask(set, &bytes, cuts) != wanted);
    let hold = core.call("mask_hold", &[Val::I32(set)]);
    core.call("mask_free", &[Val::I32(set)]);
    if case["hold"]
        .as_i64()
        .is_some_and(|bound| bound != i64::from(hold))
    {
        return Some(format!("may hold back {hold} bytes"));
    }
    wrong.map(|cuts| format!("differs when cut at {:?}", cuts.first()))
}

/// Loads each vocabulary once, when the first text needs it.
fn vocabulary_of(core: &mut Core, encoding: &str) -> Result<i32, Code> {
    if let Some(handle) = core.vocabularies.get(encoding) {
        return Ok(*handle);
    }
    let wasm = std::env::args().nth(1).unwrap_or_default();
    let path = Path::new(&wasm).with_file_name(format!("{encoding}.tokens.br"));
    let file = read_vocabulary(&path).expect("a vocabulary beside core.wasm");
    let handle = load_vocabulary(core, &file)?;
    core.vocabularies.insert(encoding.into(), handle);
    Ok(handle)
}

pub fn tokens_problem(core: &mut Core, case: &Value) -> Problem {
    let bytes = bytes_of(case, "text", "hex");
    let ids = &case["ids"];
    let limit = ids.as_array().map_or(0, Vec::len);
    let answers = vocabulary_of(core, text(case, "encoding")).and_then(|vocabulary| {
        let count = count_tokens(core, vocabulary, &bytes)?;
        Ok((count, encode_tokens(core, vocabulary, &bytes, limit)?))
    });
    match answers {
        Ok((count, _)) if case["count"] != count => Some(format!("{count} tokens")),
        Ok((_, found)) if ids.is_null() || json!(found) == *ids => None,
        other => Some(format!("{other:?}")),
    }
}
