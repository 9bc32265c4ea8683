//! Masks prompts, counts tokens, limits rates and matches routes with the WebAssembly core of the Sluice
//! gateway. Results are the same, byte for byte, as in the gateway.
//!
//! The core runs in wasmtime. The modules and the vocabularies are part of the crate. All types may be
//! shared by threads; calls run in parallel, in up to one instance of the core for each processor.
//!
//! A trap of the core would be a bug. The call during which it occurs returns [`Error::Trapped`], and so do
//! the writers and rewriters of the same instance; other calls get a new instance.

mod abi;
mod error;
mod guards;
mod instance;
mod io;
mod limiter;
mod mask;
mod pattern;
mod pool;
mod router;
mod tokens;
#[cfg(feature = "tower")]
pub mod tower;

pub use error::{Error, Result};
pub use guards::{Format, Guard, Guards, Kind, MAX_MESSAGE_BYTES, MessageDetails, Rewriter};
pub use io::{MaskReader, MaskWriter};
pub use limiter::{Decision, Limit, RateLimiter};
pub use mask::{Builtin, Mask, Rule};
pub use pattern::Pattern;
pub use router::{Field, Listener, PathType, Request, Route, Router};
pub use tokens::{TokenCounter, count_tokens};

/// Runs the examples of the page.
#[cfg(all(doctest, feature = "tower"))]
#[doc = include_str!("../README.md")]
struct Page;
