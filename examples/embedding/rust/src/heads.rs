//! HTTP/1.1 heads: bytes in, a record of numbers and spans out.

use crate::core::Core;
use serde_json::{Map, Value, json};
use wasmtime::Val;

const SPANS: [&str; 8] = [
    "method",
    "target",
    "path",
    "query",
    "authority",
    "host",
    "upgrade",
    "reason",
];
const NUMBERS: [(&str, &str); 6] = [
    ("methodId", "HEAD_METHOD_ID"),
    ("status", "HEAD_STATUS"),
    ("minor", "HEAD_MINOR"),
    ("port", "HEAD_PORT"),
    ("scheme", "HEAD_SCHEME"),
    ("hostField", "HEAD_HOST_FIELD"),
];

pub fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|char| char as u8).collect()
}

pub fn from_latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| *byte as char).collect()
}

/// The code, and the record as plain data when that is 0.
pub fn read_head(
    core: &mut Core,
    message: &str,
    bytes: &[u8],
    max_bytes: i32,
    max_fields: i32,
) -> (i32, Value) {
    core.scratch(|core| {
        let [size, field_size] = ["HEAD_SIZE", "FIELD_SIZE"].map(|name| core.abi[name]);
        let record = core.alloc((size + max_fields * field_size) as usize);
        core.write(record, &vec![0xff; size as usize]);
        core.write(
            record + core.abi["HEAD_FIELD_LIMIT"] as u32,
            &max_fields.to_le_bytes(),
        );
        let [start, length] = core.put(bytes);
        let end = start.unwrap_i32() + length.unwrap_i32();
        let mut arguments = vec![Val::I32(record as i32), start, Val::I32(end)];
        if message != "trailers" {
            arguments.extend([Val::I32(0), Val::I32(max_bytes)]);
        }
        let code = core.call(&format!("head_{message}"), &arguments);
        let head = if code == 0 {
            describe(core, record, end as u32)
        } else {
            Value::Null
        };
        (code, head)
    })
}

fn describe(core: &Core, record: u32, end: u32) -> Value {
    let at = |name: &str| record + core.abi[name] as u32;
    let text = |place: u32| match core.word(place) {
        -1 => Value::Null,
        start => from_latin1(core.read(start as u32, core.word(place + 4) as u32)).into(),
    };
    let mut head = Map::new();
    for name in SPANS {
        head.insert(
            name.into(),
            text(at(&format!("HEAD_{}", name.to_uppercase()))),
        );
    }
    for (name, field) in NUMBERS {
        head.insert(name.into(), core.word(at(field)).into());
    }
    let flags = core.word(at("HEAD_FLAGS"));
    let set = core.abi.iter().filter(|(_, bit)| flags & **bit != 0);
    let mut names: Vec<&str> = set
        .filter_map(|(name, _)| name.strip_prefix("FLAG_"))
        .collect();
    names.sort_unstable();
    let (mut fields, mut hops) = (vec![], vec![]);
    for index in 0..core.word(at("HEAD_FIELD_COUNT")).max(0) {
        let field = at("HEAD_FIELDS") + (index * core.abi["FIELD_SIZE"]) as u32;
        let part = |name: &str| field + core.abi[name] as u32;
        fields.push(json!([text(part("FIELD_NAME")), text(part("FIELD_VALUE"))]));
        if core.word(part("FIELD_INFO")) & core.abi["INFO_HOP"] != 0 {
            hops.push(index);
        }
    }
    let after = (core.word(at("HEAD_END")) as u32).min(end);
    head.insert(
        "contentLength".into(),
        (core.double(at("HEAD_CONTENT_LENGTH")) as i64).into(),
    );
    head.insert("flags".into(), json!(names));
    head.insert("fields".into(), json!(fields));
    head.insert("hops".into(), json!(hops));
    head.insert("rest".into(), from_latin1(core.read(after, end)).into());
    Value::Object(head)
}
