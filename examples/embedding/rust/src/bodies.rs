//! Chunked bodies: bytes in pieces, spans of data out.

use crate::core::Core;
use crate::heads::from_latin1;
use wasmtime::Val;

/// What there is of a body, and the code of the last call. Texts are Latin-1.
#[derive(Debug, Default, PartialEq)]
pub struct Body {
    pub code: i32,
    pub data: String,
    pub trailers: String,
    pub rest: String,
    pub flags: Vec<String>,
}

/// Reads a body that arrives cut at `cuts`.
pub fn read_body(core: &mut Core, bytes: &[u8], cuts: &[usize], trailer_limit: i32) -> Body {
    core.scratch(|core| {
        let mut seen = Body::default();
        let record = core.alloc(core.abi["BODY_SIZE"] as usize);
        let [input, _] = core.put(bytes);
        let start = input.unwrap_i32() as u32;
        core.call(
            "chunks_start",
            &[Val::I32(record as i32), Val::I32(trailer_limit)],
        );
        let mut at = start;
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            loop {
                let span = [at, start + cut as u32].map(|address| Val::I32(address as i32));
                seen.code = core.call("chunks_read", &[Val::I32(record as i32), span[0], span[1]]);
                if seen.code < 0 {
                    return seen;
                }
                at = note(core, record, &mut seen);
                if seen.code != core.abi["CHUNKS_AGAIN"] {
                    break;
                }
            }
            if seen.code == core.abi["CHUNKS_END"] {
                break;
            }
        }
        seen.rest = from_latin1(&bytes[(at - start) as usize..]);
        seen
    })
}

/// Adds the result of one call from the record; returns the address after what was read.
fn note(core: &Core, record: u32, seen: &mut Body) -> u32 {
    let word = |offset: i32| core.word(record + offset as u32);
    let text = |offset: i32| from_latin1(core.read(word(offset) as u32, word(offset + 4) as u32));
    for index in 0..word(core.abi["BODY_SPAN_COUNT"]) {
        seen.data += &text(core.abi["BODY_SPANS"] + index * 8);
    }
    if word(core.abi["BODY_TRAILER"]) != -1 {
        seen.trailers += &text(core.abi["BODY_TRAILER"]);
    }
    let flags = word(core.abi["BODY_FLAGS"]);
    let set = core.abi.iter().filter(|(_, bit)| flags & **bit != 0);
    seen.flags = set
        .filter_map(|(name, _)| name.strip_prefix("BODY_HAS_").map(String::from))
        .collect();
    seen.flags.sort_unstable();
    word(core.abi["BODY_CONSUMED"]) as u32
}
