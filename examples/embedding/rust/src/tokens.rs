//! Token counts: a vocabulary goes in once, decompressed; then texts.

use crate::core::{Code, Core, Failure};
use wasmtime::Val;

/// Takes brotli off NAME.tokens.br.
pub fn read_vocabulary(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    let mut file = Vec::new();
    brotli_decompressor::BrotliDecompress(&mut std::fs::File::open(path)?, &mut file)?;
    Ok(file)
}

/// The handle that tokens are counted with. The file goes into a block, not into scratch: what is loaded
/// takes 17 MB, which should not lie behind the file's own.
pub fn load_vocabulary(core: &mut Core, file: &[u8]) -> Result<i32, Code> {
    let length = Val::I32(file.len() as i32);
    let block = core.call("block_new", &[Val::I32(file.len() as i32 + 16)]);
    assert_ne!(block, 0, "no room for the vocabulary");
    core.write(block as u32, file);
    let handle = core.call("tokens_load", &[Val::I32(block), length]);
    core.call("block_free", &[Val::I32(block)]);
    core.check(handle)
}

pub fn count_tokens(core: &mut Core, vocabulary: i32, text: &[u8]) -> Result<i32, Code> {
    core.scratch(|core| {
        let [address, length] = core.put(text);
        let count = core.call("tokens_count", &[Val::I32(vocabulary), address, length]);
        core.check(count)
    })
}

/// The ids of the first `limit` tokens.
pub fn encode_tokens(
    core: &mut Core,
    vocabulary: i32,
    text: &[u8],
    limit: usize,
) -> Result<Vec<i32>, Code> {
    core.scratch(|core| {
        let [address, length] = core.put(text);
        let out = core.alloc(limit * 4 + 16);
        let room = [Val::I32(out as i32), Val::I32(limit as i32)];
        let arguments = [&[Val::I32(vocabulary), address, length], &room[..]].concat();
        let count = core.call("tokens_encode", &arguments);
        let written = core.check(count)?.min(limit as i32) as u32;
        Ok((0..written).map(|i| core.word(out + i * 4)).collect())
    })
}
