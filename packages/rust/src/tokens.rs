use crate::error::{Error, Result};
use crate::instance::Core;
use crate::pool::{Object, TOKENS};
use std::sync::{Arc, LazyLock};
use wasmtime::Val;

type Vocabulary = LazyLock<Result<Arc<Object>>>;

static O200K: Vocabulary = LazyLock::new(|| load(include_bytes!("../data/o200k_base.tokens.br")));
static CL100K: Vocabulary = LazyLock::new(|| load(include_bytes!("../data/cl100k_base.tokens.br")));

fn load(file: &'static [u8]) -> Result<Arc<Object>> {
    Object::new(&TOKENS, "tokens_free", move |core| {
        let mut bytes = Vec::new();
        brotli_decompressor::BrotliDecompress(&mut &file[..], &mut bytes)
            .map_err(|error| Error::Trapped(error.to_string()))?;
        let block = core.block(bytes.len() + 16)?;
        core.write(block, &bytes)?;
        let arguments = [Val::I32(block as i32), Val::I32(bytes.len() as i32)];
        let loaded = core.checked("loading a vocabulary", "tokens_load", &arguments);
        core.call("block_free", &arguments[..1])?;
        loaded
    })
}

/// A vocabulary, and the number of tokens of a model per token of the vocabulary (1: exact).
type Encoding = (&'static Vocabulary, f64);

/// Encodings by prefix of the model's name. The first prefix that no letter or digit follows wins. The
/// gateway has the same table in src/engines/core/tokens-models.ts.
static MODELS: [(&str, Encoding); 20] = [
    ("gpt-4o", (&O200K, 1.0)),
    ("chatgpt-4o", (&O200K, 1.0)),
    ("gpt-4.1", (&O200K, 1.0)),
    ("gpt-4.5", (&O200K, 1.0)),
    ("gpt-5", (&O200K, 1.0)),
    ("gpt-oss", (&O200K, 1.0)),
    ("o1", (&O200K, 1.0)),
    ("o3", (&O200K, 1.0)),
    ("o4", (&O200K, 1.0)),
    ("codex-mini", (&O200K, 1.0)),
    ("gpt-4", (&CL100K, 1.0)),
    ("gpt-3.5", (&CL100K, 1.0)),
    ("gpt-35", (&CL100K, 1.0)),
    ("text-embedding-3", (&CL100K, 1.0)),
    ("text-embedding-ada-002", (&CL100K, 1.0)),
    ("davinci-002", (&CL100K, 1.0)),
    ("babbage-002", (&CL100K, 1.0)),
    ("claude", (&O200K, 1.2)),
    ("gemini", (&O200K, 1.1)),
    ("gemma", (&O200K, 1.1)),
];

fn encoding_of(model: &str) -> Encoding {
    let name = model.to_lowercase();
    let name = name.rsplit('/').next().unwrap_or("");
    let name = without_provider(name.strip_prefix("ft:").unwrap_or(name));
    let matches = |prefix: &str| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| {
            !rest.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        })
    };
    let found = MODELS.iter().find(|(prefix, _)| matches(prefix));
    found.map_or((&O200K, 1.2), |(_, encoding)| *encoding)
}

/// Removes `anthropic.`, with the region before it, from the begin of a name.
fn without_provider(mut name: &str) -> &str {
    let mut rest = name;
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
    };
    while let Some((label, after)) = rest.split_once('.').filter(|(label, _)| is_label(label)) {
        rest = after;
        if label == "anthropic" {
            name = rest;
        }
    }
    name
}

/// Counts tokens for a model.
#[derive(Clone)]
pub struct TokenCounter(Encoding);

impl TokenCounter {
    /// A counter for a model such as `gpt-4o`. The vocabulary is loaded when it is first needed.
    pub fn new(model: &str) -> TokenCounter {
        TokenCounter(encoding_of(model))
    }

    /// The number of tokens of a text; an estimate if the model's vocabulary is not published. Bytes that
    /// are not UTF-8 count as U+FFFD.
    pub fn count(&self, text: impl AsRef<[u8]>) -> Result<usize> {
        let count = self.run(|core, handle| {
            let [place, length] = core.put(text.as_ref())?;
            let arguments = [Val::I32(handle), place, length];
            core.checked("counting tokens", "tokens_count", &arguments)
        })?;
        Ok((f64::from(count) * self.0.1).ceil() as usize)
    }

    /// The ids of the first tokens of a text in the published vocabulary, at most `limit` of them.
    pub fn encode(&self, text: impl AsRef<[u8]>, limit: usize) -> Result<Vec<u32>> {
        let text = text.as_ref();
        // A byte that is not UTF-8 counts as three.
        let limit = limit.min(text.len().saturating_mul(3));
        self.run(|core, handle| {
            let [place, length] = core.put(text)?;
            let out = core.alloc(limit.saturating_mul(4).saturating_add(16))?;
            let rest = [Val::I32(out as i32), Val::I32(limit as i32)];
            let arguments = [&[Val::I32(handle), place, length], &rest[..]].concat();
            let count = core.checked("encoding", "tokens_encode", &arguments)?;
            (0..(count as usize).min(limit) as u32)
                .map(|i| Ok(core.word(out + i * 4)? as u32))
                .collect()
        })
    }

    fn run<T>(&self, work: impl FnOnce(&mut Core, i32) -> Result<T>) -> Result<T> {
        self.0.0.as_ref().map_err(Error::clone)?.run(work)
    }
}

/// The number of tokens of a text for a model such as `gpt-4o`.
pub fn count_tokens(text: &str, model: &str) -> Result<usize> {
    TokenCounter::new(model).count(text)
}
