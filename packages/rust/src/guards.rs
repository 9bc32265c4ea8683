use crate::abi;
use crate::error::{Error, Result};
use crate::instance::Core;
use crate::mask::{Rule, compile_rules};
use crate::pool::{Object, Session, TEXTS};
use std::fmt;
use std::sync::Arc;
use wasmtime::Val;

/// Maximum size of a document, and of an event of a stream.
pub const MAX_MESSAGE_BYTES: usize = 32 << 20;

/// The API that a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Chat completions.
    Completions = abi::TEXTS_COMPLETIONS as isize,
    Messages = abi::TEXTS_MESSAGES as isize,
    Responses = abi::TEXTS_RESPONSES as isize,
    Embeddings = abi::TEXTS_EMBEDDINGS as isize,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Request = abi::TEXTS_REQUEST as isize,
    Answer = abi::TEXTS_ANSWER as isize,
    /// An answer of server-sent events.
    Stream = abi::TEXTS_STREAM as isize,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Kind::Request => "request",
            Kind::Answer => "answer",
            Kind::Stream => "stream",
        })
    }
}

/// Rules that are applied together.
#[derive(Clone, Debug)]
pub struct Guard {
    pub(crate) rules: Vec<Rule>,
    pub(crate) rejects: bool,
}

impl Guard {
    /// A guard that masks what matches.
    pub fn masking<R: Into<Rule>>(rules: impl IntoIterator<Item = R>) -> Guard {
        Guard {
            rules: rules.into_iter().map(Into::into).collect(),
            rejects: false,
        }
    }

    /// A guard that rejects a message if something matches.
    pub fn rejecting<R: Into<Rule>>(rules: impl IntoIterator<Item = R>) -> Guard {
        Guard {
            rejects: true,
            ..Guard::masking(rules)
        }
    }
}

/// Judges the texts in messages to language models and in their answers. Each guard sees the texts as the
/// guards before it leave them.
#[derive(Clone)]
pub struct Guards(Arc<Object>);

impl Guards {
    /// Compiles guards, at most 64.
    pub fn new(guards: impl IntoIterator<Item = Guard>) -> Result<Guards> {
        let guards: Vec<Guard> = guards.into_iter().collect();
        let build = move |core: &mut Core| {
            let chain = core.checked("creating guards", "guards_new", &[])?;
            let added = guards
                .iter()
                .try_for_each(|each| add_guard(core, chain, each));
            core.or_free(added, "guards_free", chain)
        };
        Ok(Guards(Object::new(&TEXTS, "guards_free", build)?))
    }

    /// Masks the texts of a whole message. If it fails, the message must not pass.
    pub fn rewrite(&self, format: Format, kind: Kind, message: &[u8]) -> Result<Vec<u8>> {
        self.rewriter(format, kind)?.end(message)
    }

    /// A rewriter of one message.
    pub fn rewriter(&self, format: Format, kind: Kind) -> Result<Rewriter> {
        let session = self.0.pool.open("texts_free", |core| {
            let chain = self.0.handle(core)?;
            let message = [format as i32, kind as i32, MAX_MESSAGE_BYTES as i32];
            let arguments = [&[chain], &message[..]].concat();
            let arguments: Vec<Val> = arguments.into_iter().map(Val::I32).collect();
            core.checked("creating a rewriter", "texts_new", &arguments)
        })?;
        Ok(Rewriter { session, kind })
    }
}

fn add_guard(core: &mut Core, chain: i32, guard: &Guard) -> Result<()> {
    let set = compile_rules(core, &guard.rules)?;
    let arguments = [chain, set, guard.rejects.into()].map(Val::I32);
    let added = core.checked("adding a guard", "guards_add", &arguments);
    // The chain has its own reference to the mask.
    core.call("mask_free", &[Val::I32(set)])?;
    added.map(|_| ())
}

/// Rewrites one message that arrives in pieces. After an error, the rest of the message must not pass;
/// [`Rewriter::fail`] ends it.
pub struct Rewriter {
    session: Session,
    kind: Kind,
}

/// What is known of a message so far.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageDetails {
    /// Usage that the answer reports.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub model: Option<String>,
    /// The request asks for a stream.
    pub is_stream: bool,
    /// Index of the first guard that rejects the message.
    pub rejected_by: Option<usize>,
}

impl Rewriter {
    /// Adds bytes of the message. Returns what is ready.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<u8>> {
        self.add(piece, false)
    }

    /// Adds the last bytes. Returns everything that remains.
    pub fn end(&mut self, piece: &[u8]) -> Result<Vec<u8>> {
        self.add(piece, true)
    }

    fn add(&mut self, piece: &[u8], is_end: bool) -> Result<Vec<u8>> {
        let kind = self.kind;
        self.session.run(|core, texts| {
            let [place, length] = core.put(piece)?;
            let arguments = [Val::I32(texts), place, length, Val::I32(is_end.into())];
            let size = match core.call("texts_push", &arguments)? {
                code if code < 0 => {
                    let code = abi::code_name(code);
                    return Err(Error::Unreadable { kind, code });
                }
                size => size,
            };
            let out = output(core, texts, size)?;
            match read_details(core, texts)?.rejected_by {
                Some(guard) => Err(Error::Rejected { kind, guard }),
                None => Ok(out),
            }
        })
    }

    /// Ends the message with an error in its format, after the events that were ready before.
    pub fn fail(&mut self, status: u16, message: &str) -> Result<Vec<u8>> {
        self.session.run(|core, texts| {
            let [text, length] = core.put(message.as_bytes())?;
            let arguments = [Val::I32(texts), Val::I32(status.into()), text, length];
            let size = core.checked("writing an error", "texts_fail", &arguments)?;
            output(core, texts, size)
        })
    }

    /// What is known of the message so far.
    pub fn details(&self) -> Result<MessageDetails> {
        self.session.run(read_details)
    }
}

fn output(core: &mut Core, texts: i32, size: i32) -> Result<Vec<u8>> {
    let start = core.call("texts_output", &[Val::I32(texts)])? as u32;
    Ok(core.read(start, size as usize)?.to_vec())
}

fn read_details(core: &mut Core, texts: i32) -> Result<MessageDetails> {
    let record = core.alloc(abi::TEXTS_RECORD_SIZE as usize)?;
    let arguments = [Val::I32(texts), Val::I32(record as i32)];
    core.checked("reading details", "texts_record", &arguments)?;
    let at = |offset: i32| record + offset as u32;
    let flags = core.word(at(abi::TEXTS_FLAGS))?;
    let tokens = |offset, flag| match flags & flag {
        0 => Ok(None),
        _ => core.double(at(offset)).map(|count| Some(count as u64)),
    };
    let start = core.word(at(abi::TEXTS_MODEL))? as u32;
    let end = core.word(at(abi::TEXTS_MODEL + 4))? as u32;
    let model = match end > start {
        true => Some(core.read(start, (end - start) as usize)?),
        false => None,
    };
    Ok(MessageDetails {
        input_tokens: tokens(abi::TEXTS_INPUT_TOKENS, abi::TEXTS_HAS_INPUT)?,
        output_tokens: tokens(abi::TEXTS_OUTPUT_TOKENS, abi::TEXTS_HAS_OUTPUT)?,
        model: model.map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
        is_stream: flags & abi::TEXTS_IS_STREAM != 0,
        rejected_by: usize::try_from(core.word(at(abi::TEXTS_REJECTED))?).ok(),
    })
}
