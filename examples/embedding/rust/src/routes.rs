//! Route tables: specifications in, the id of the route for a request out.

use crate::core::{Code, Core};
use crate::heads::latin1;
use serde_json::{Value, json};
use wasmtime::Val;

/// A table, and the patterns that its routes refer to.
pub struct Routes {
    table: i32,
    regexes: Vec<i32>,
}

/// Words where abi.ts draws them; texts lie behind, named by offset and length.
struct Specification<'a> {
    core: &'a mut Core,
    bytes: Vec<u8>,
}

impl Specification<'_> {
    /// The place of a named field, behind `base`.
    fn at(&self, base: usize, name: &str) -> usize {
        base + self.core.abi[name] as usize
    }

    fn word(&mut self, at: usize, value: i32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, at: usize, text: &str) {
        self.word(at, self.bytes.len() as i32);
        self.word(at + 4, text.len() as i32);
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

fn text<'a>(value: &'a Value, key: &str, otherwise: &'a str) -> &'a str {
    value[key].as_str().unwrap_or(otherwise)
}

fn number(value: &Value, key: &str) -> i32 {
    value[key].as_i64().unwrap_or(0) as i32
}

/// Kind of a hostname, and its bytes: those of a wildcard begin with the dot.
fn host_key(hostname: &str) -> (&'static str, &str) {
    match hostname.strip_prefix('*') {
        _ if hostname.is_empty() => ("HOST_ANY", ""),
        Some(suffix) => ("HOST_WILDCARD", suffix),
        None => ("HOST_EXACT", hostname),
    }
}

impl Routes {
    pub fn new(core: &mut Core) -> Result<Routes, Code> {
        let made = core.call("table_new", &[]);
        let table = core.check(made)?;
        let regexes = vec![];
        Ok(Routes { table, regexes })
    }

    pub fn add_listener(&self, core: &mut Core, hostname: &str, scope: i32) -> Result<i32, Code> {
        let (kind, host) = host_key(hostname);
        core.scratch(|core| {
            let [address, length] = core.put(host.as_bytes());
            let [table, kind, scope] = [self.table, core.abi[kind], scope].map(Val::I32);
            let added = core.call("listener_add", &[table, kind, address, length, scope]);
            core.check(added)
        })
    }

    pub fn add_route(&mut self, core: &mut Core, route: &Value) -> Result<i32, Code> {
        let of = |key: &str| route[key].as_array().cloned().unwrap_or_default();
        let (headers, query) = (of("headers"), of("query"));
        let (count, queries) = (headers.len() as i32, query.len() as i32);
        let predicates = [headers, query].concat();
        let size = core.abi["ROUTE_PREDICATES"] + (count + queries) * core.abi["PREDICATE_SIZE"];
        let any = json!({ "type": "prefix", "value": "/" });
        let path = route.get("path").unwrap_or(&any);
        let bytes = vec![0; size as usize];
        let mut spec = Specification { core, bytes };
        let (host_kind, host) = host_key(text(route, "hostname", ""));
        let name = format!("n/{}", route["id"]);
        let path_kind = format!("PATH_{}", text(path, "type", "").to_uppercase());
        for (field, value) in [
            ("ROUTE_ID", number(route, "id")),
            ("ROUTE_SCOPE", number(route, "scope")),
            ("ROUTE_HOST_KIND", spec.core.abi[host_kind]),
            ("ROUTE_PATH_KIND", spec.core.abi[&path_kind]),
            ("ROUTE_PATH_REGEX", self.regex_of(spec.core, path)?),
            ("ROUTE_RULE", number(route, "ruleIndex")),
            ("ROUTE_MATCH", number(route, "matchIndex")),
            ("ROUTE_FIELD_COUNT", count),
            ("ROUTE_QUERY_COUNT", queries),
        ] {
            spec.word(spec.at(0, field), value);
        }
        spec.text(spec.at(0, "ROUTE_HOST"), host);
        spec.text(spec.at(0, "ROUTE_PATH"), text(path, "value", ""));
        spec.text(spec.at(0, "ROUTE_NAME"), text(route, "name", &name));
        spec.text(spec.at(0, "ROUTE_METHOD"), text(route, "method", ""));
        let created = spec.at(0, "ROUTE_CREATED");
        let time = route["createdAt"].as_f64().unwrap_or(0.0).to_le_bytes();
        spec.bytes[created..created + 8].copy_from_slice(&time);
        for (index, predicate) in predicates.iter().enumerate() {
            self.add_predicate(&mut spec, index, predicate)?;
        }
        let Specification { core, bytes } = spec;
        core.scratch(|core| {
            let [address, length] = core.put(&bytes);
            let added = core.call("route_add", &[Val::I32(self.table), address, length]);
            core.check(added)
        })
    }

    fn add_predicate(
        &mut self,
        spec: &mut Specification,
        index: usize,
        predicate: &Value,
    ) -> Result<(), Code> {
        let base = spec.at(index * spec.at(0, "PREDICATE_SIZE"), "ROUTE_PREDICATES");
        let is_regex = predicate["type"] == "regex";
        let kind = ["PREDICATE_EXACT", "PREDICATE_PATTERN"][usize::from(is_regex)];
        spec.word(spec.at(base, "PREDICATE_KIND"), spec.core.abi[kind]);
        let regex = self.regex_of(spec.core, predicate)?;
        spec.word(spec.at(base, "PREDICATE_REGEX"), regex);
        spec.text(spec.at(base, "PREDICATE_NAME"), text(predicate, "name", ""));
        spec.text(
            spec.at(base, "PREDICATE_VALUE"),
            text(predicate, "value", ""),
        );
        Ok(())
    }

    /// The compiled pattern of a path or predicate; 0 if it has none.
    fn regex_of(&mut self, core: &mut Core, described: &Value) -> Result<i32, Code> {
        if described["type"] != "regex" {
            return Ok(0);
        }
        let flags = core.abi["REGEX_MATCH_ONLY"];
        let handle = core.compile(text(described, "value", ""), flags)?;
        self.regexes.push(handle);
        Ok(handle)
    }

    /// The id of the route, or a code: NO_ROUTE, NO_LISTENER. Texts are Latin-1: bytes.
    pub fn matches(&self, core: &mut Core, request: &Value) -> i32 {
        let headers = request["headers"].as_array().cloned().unwrap_or_default();
        let authority = text(request, "authority", "a");
        let path = text(request, "path", "/");
        let bracket = authority.rfind(']').unwrap_or(0);
        let colon = authority[bracket..].find(':');
        let host = colon.map_or(authority, |colon| &authority[..bracket + colon]);
        // As the head reader does it: without the port, and without the dot of an absolute name.
        let host = host.strip_suffix('.').unwrap_or(host);
        let query = request["query"].as_str();
        let target = query.map_or(path.to_string(), |query| format!("{path}?{query}"));
        core.scratch(|core| {
            let [head, field] = ["HEAD_SIZE", "FIELD_SIZE"].map(|name| core.abi[name] as usize);
            let record = core.alloc(head + headers.len() * field);
            core.write(record, &vec![0xff; head]);
            let count = headers.len() as i32;
            place_word(core, record, "HEAD_FIELD_COUNT", count);
            place_word(core, record, "HEAD_FIELD_LIMIT", count);
            place_word(core, record, "HEAD_FLAGS", 0);
            place_text(core, record, "HEAD_METHOD", text(request, "method", "GET"));
            place_text(core, record, "HEAD_AUTHORITY", authority);
            place_text(core, record, "HEAD_HOST", host);
            place_text(core, record, "HEAD_PATH", path);
            place_text(core, record, "HEAD_TARGET", &target);
            if let Some(query) = query {
                place_text(core, record, "HEAD_QUERY", query);
            }
            for (index, header) in headers.iter().enumerate() {
                let place = record + (core.abi["HEAD_FIELDS"] as usize + index * field) as u32;
                place_text(core, place, "FIELD_NAME", header[0].as_str().unwrap_or(""));
                place_text(core, place, "FIELD_VALUE", header[1].as_str().unwrap_or(""));
                place_word(core, place, "FIELD_INFO", 0);
            }
            let arguments = [self.table, record as i32].map(Val::I32);
            core.call("match_request", &arguments)
        })
    }

    pub fn free(self, core: &mut Core) {
        core.call("table_free", &[Val::I32(self.table)]);
        for regex in self.regexes {
            core.call("regex_free", &[Val::I32(regex)]);
        }
    }
}

fn place_word(core: &mut Core, record: u32, name: &str, value: i32) {
    core.write(record + core.abi[name] as u32, &value.to_le_bytes());
}

/// A span of the record: where a copy of the text lies.
fn place_text(core: &mut Core, record: u32, name: &str, text: &str) {
    let [start, length] = core.put(&latin1(text)).map(|value| value.unwrap_i32());
    let at = record + core.abi[name] as u32;
    core.write(at, &start.to_le_bytes());
    core.write(at + 4, &(start + length).to_le_bytes());
}
