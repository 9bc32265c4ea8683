use crate::error::{Error, Result};
use crate::instance::Core;
use crate::pool::{CORE, Object};
use std::ops::Range;
use std::sync::Arc;
use wasmtime::Val;

/// The number of matches that one call of the core returns.
const MAX_SPANS: usize = 1024;

pub(crate) fn compile_pattern(core: &mut Core, pattern: &str, flags: i32) -> Result<i32> {
    let [source, length] = core.put(pattern.as_bytes())?;
    match core.call("regex_compile", &[source, length, Val::I32(flags)])? {
        code if code < 0 => Err(Error::Pattern {
            pattern: pattern.to_owned(),
            offset: core.call("last_error_offset", &[])?.max(0) as usize,
            code: crate::abi::code_name(code),
        }),
        handle => Ok(handle),
    }
}

/// A regular expression in RE2 syntax. Searching takes time linear in the text.
#[derive(Clone)]
pub struct Pattern(Arc<Object>);

impl Pattern {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Pattern> {
        let pattern = pattern.to_owned();
        let build = move |core: &mut Core| compile_pattern(core, &pattern, 0);
        Ok(Pattern(Object::new(&CORE, "regex_free", build)?))
    }

    /// Whether the pattern matches anywhere in the text.
    pub fn is_match(&self, text: impl AsRef<[u8]>) -> Result<bool> {
        self.matches("regex_is_match", text.as_ref())
    }

    /// Whether the pattern matches the whole text.
    pub fn is_full_match(&self, text: impl AsRef<[u8]>) -> Result<bool> {
        self.matches("regex_full_match", text.as_ref())
    }

    fn matches(&self, function: &'static str, text: &[u8]) -> Result<bool> {
        self.0.run(|core, handle| {
            let [place, length] = core.put(text)?;
            let found = core.checked("matching", function, &[Val::I32(handle), place, length])?;
            Ok(found == 1)
        })
    }

    /// The matches from left to right, as positions of bytes.
    pub fn find_all(&self, text: impl AsRef<[u8]>) -> Result<Vec<Range<usize>>> {
        let text = text.as_ref();
        self.0.run(|core, handle| {
            let mut spans = Vec::new();
            let [place, length] = core.put(text)?;
            let out = core.alloc(MAX_SPANS * 8)?;
            let mut from = 0;
            while from <= text.len() {
                let rest = [from as i32, out as i32, MAX_SPANS as i32].map(Val::I32);
                let arguments = [&[Val::I32(handle), place, length], &rest[..]].concat();
                let count = core.checked("searching", "regex_find_all", &arguments)?;
                for i in 0..count as u32 {
                    let start = core.word(out + i * 8)? as usize;
                    spans.push(start..core.word(out + i * 8 + 4)? as usize);
                }
                match spans.last() {
                    Some(last) if count as usize == MAX_SPANS => from = after_match(text, last),
                    _ => break,
                }
            }
            Ok(spans)
        })
    }
}

/// Where the search continues: one character after an empty match.
fn after_match(text: &[u8], last: &Range<usize>) -> usize {
    if !last.is_empty() {
        return last.end;
    }
    let rest = &text[last.end..];
    let first = rest.utf8_chunks().next();
    let character = first.and_then(|chunk| chunk.valid().chars().next());
    last.end + character.map_or(1, char::len_utf8)
}
