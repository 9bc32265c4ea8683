use crate::error::Result;
use crate::mask::{Mask, PIECE, push_text};
use crate::pool::Session;
use std::io::{self, Read, Write};

/// Masks a text that is written in pieces. What it writes does not depend on where the text was cut.
///
/// Text that may still become part of a match is held back until [`MaskWriter::finish`], also by `flush`. A
/// writer that is dropped finishes the text and ignores errors.
pub struct MaskWriter<W: Write> {
    inner: Option<W>,
    stream: Session,
    masked: Vec<u8>,
    has_failed: bool,
}

impl<W: Write> MaskWriter<W> {
    /// Returns a writer that writes the masked text to `inner`.
    pub fn new(inner: W, mask: &Mask) -> Result<MaskWriter<W>> {
        Ok(MaskWriter {
            inner: Some(inner),
            stream: mask.open()?,
            masked: Vec::new(),
            has_failed: false,
        })
    }

    /// Writes what was held back, and returns the inner writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.push(&[], true)?;
        let mut inner = self.inner.take().ok_or_else(closed)?;
        inner.flush()?;
        Ok(inner)
    }

    fn push(&mut self, piece: &[u8], is_end: bool) -> io::Result<()> {
        let inner = self.inner.as_mut().ok_or_else(closed)?;
        if self.has_failed {
            return Err(closed());
        }
        self.masked.clear();
        // After an error, the rest of the text must not pass.
        self.has_failed = true;
        let masked = &mut self.masked;
        self.stream
            .run(|core, stream| push_text(core, stream, piece, is_end, masked))?;
        inner.write_all(masked)?;
        self.has_failed = false;
        Ok(())
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "an earlier write failed")
}

impl<W: Write> Write for MaskWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE)];
        self.push(piece, false)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl<W: Write> Drop for MaskWriter<W> {
    fn drop(&mut self) {
        if self.inner.is_some() && !self.has_failed && !std::thread::panicking() {
            let _ = self.push(&[], true);
        }
    }
}

/// Masks the text that is read from another reader.
pub struct MaskReader<R: Read> {
    inner: R,
    stream: Session,
    masked: Vec<u8>,
    /// How much of `masked` has been read.
    position: usize,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Open,
    Ended,
    Failed,
}

impl<R: Read> MaskReader<R> {
    /// Returns a reader of the masked text of `inner`.
    pub fn new(inner: R, mask: &Mask) -> Result<MaskReader<R>> {
        Ok(MaskReader {
            inner,
            stream: mask.open()?,
            masked: Vec::new(),
            position: 0,
            state: State::Open,
        })
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut piece = [0; 8 * 1024];
        let count = self.inner.read(&mut piece)?;
        self.masked.clear();
        self.position = 0;
        let (is_end, masked) = (count == 0, &mut self.masked);
        let pushed = self
            .stream
            .run(|core, stream| push_text(core, stream, &piece[..count], is_end, masked));
        if pushed.is_err() {
            self.masked.clear();
            self.state = State::Failed;
        } else if is_end {
            self.state = State::Ended;
        }
        Ok(pushed?)
    }
}

impl<R: Read> Read for MaskReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.position == self.masked.len() && !out.is_empty() {
            match self.state {
                State::Open => self.fill()?,
                State::Ended => return Ok(0),
                State::Failed => return Err(closed()),
            }
        }
        let count = out.len().min(self.masked.len() - self.position);
        out[..count].copy_from_slice(&self.masked[self.position..self.position + count]);
        self.position += count;
        Ok(count)
    }
}
