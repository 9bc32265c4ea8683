use crate::abi::{code_name, pattern_message};
use crate::guards::Kind;
use std::fmt;

/// What a call returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. A `code` is a name in core.abi.json.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A pattern cannot be compiled. `offset` is the position in the pattern in bytes.
    Pattern {
        pattern: String,
        offset: usize,
        code: &'static str,
    },
    /// A message cannot be judged, so that it must not pass.
    Unreadable { kind: Kind, code: &'static str },
    /// A guard rejects a message. `guard` is its index.
    Rejected { kind: Kind, guard: usize },
    /// An argument is not allowed.
    Argument(&'static str),
    /// The core refused a call.
    Core {
        action: &'static str,
        code: &'static str,
    },
    /// The instance of the core has failed, which is a bug.
    Trapped(String),
}

impl Error {
    pub(crate) fn core(action: &'static str, code: i32) -> Self {
        let code = code_name(code);
        Error::Core { action, code }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Pattern {
                pattern,
                offset,
                code,
            } => {
                let reason = pattern_message(code).unwrap_or(code);
                let before = pattern.char_indices().take_while(|(at, _)| at < offset);
                let character = before.count() + 1;
                write!(
                    out,
                    "pattern {pattern:?}: {reason} (at character {character})"
                )
            }
            Error::Unreadable { kind, code } => write!(out, "the {kind} cannot be judged: {code}"),
            Error::Rejected { kind, guard } => write!(out, "guard {guard} rejects the {kind}"),
            Error::Argument(reason) => out.write_str(reason),
            Error::Core { action, code } => write!(out, "{action} failed: {code}"),
            Error::Trapped(reason) => write!(out, "the core has failed: {reason}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        std::io::Error::other(error)
    }
}
