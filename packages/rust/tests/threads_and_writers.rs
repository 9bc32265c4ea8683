use sluice_core::*;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn threads_share_masks_and_limits() {
    let mask = Mask::new([Builtin::Email]).unwrap();
    let limit = Limit::new(100.0, Duration::from_secs(3600));
    let limiter = RateLimiter::new(limit).unwrap();
    let allowed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (mask, limiter, allowed) = (&mask, &limiter, &allowed);
            scope.spawn(move || {
                for _ in 0..50 {
                    let text = format!("{number} a{number}@example.com ");
                    let wanted = format!("{number} <EMAIL_ADDRESS> ");
                    assert_eq!(mask.mask(&text).unwrap(), wanted);
                    let mut writer = MaskWriter::new(Vec::new(), mask).unwrap();
                    writer.write_all(&text.as_bytes()[..5]).unwrap();
                    writer.write_all(&text.as_bytes()[5..]).unwrap();
                    assert_eq!(writer.finish().unwrap(), wanted.as_bytes());
                    assert!(count_tokens(&text, "gpt-4").unwrap() > 4);
                    let decision = limiter.take("", 1.0).unwrap();
                    allowed.fetch_add(decision.allowed.into(), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(allowed.into_inner(), 100);
}

struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_that_has_failed_takes_no_more() {
    let mut writer = MaskWriter::new(Full, &Mask::new([Builtin::Email]).unwrap()).unwrap();
    let failed = writer.write_all(b"some text. More text, which is not held back.");
    assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(
        writer.write(b"x").unwrap_err().kind(),
        io::ErrorKind::BrokenPipe
    );
    assert!(writer.finish().is_err());
}

#[test]
fn a_writer_that_is_dropped_writes_what_it_held_back() {
    let mut out = Vec::new();
    let mask = Mask::new([Builtin::Email]).unwrap();
    write!(
        MaskWriter::new(&mut out, &mask).unwrap(),
        "to ada@example.com"
    )
    .unwrap();
    assert_eq!(out, b"to <EMAIL_ADDRESS>");
}

#[test]
fn limits_refuse_and_give_back() {
    let limiter = RateLimiter::new(Limit::new(1.0, Duration::from_secs(3600)).burst(1.0)).unwrap();
    let taken = [(); 3].map(|()| limiter.take("a", 1.0).unwrap());
    assert_eq!(taken.map(|decision| decision.allowed), [true, true, false]);
    assert!(taken[2].wait > Some(Duration::from_secs(3000)));
    assert!(limiter.take("b", 1.0).unwrap().allowed);
    assert_eq!(limiter.take("b", 3.0).unwrap().wait, None);
    assert!(limiter.charge("b", 5.0).unwrap().remaining < 0.0);
    limiter.charge("b", -6.0).unwrap();
    assert!(limiter.peek("b", 2.0).unwrap().allowed);
    for (rate, burst) in [(f64::NAN, 0.0), (f64::INFINITY, 0.0), (1.0, f64::INFINITY)] {
        let limit = Limit::new(rate, Duration::from_secs(1)).burst(burst);
        assert!(RateLimiter::new(limit).is_err());
    }
    assert!(RateLimiter::new(Limit::new(1.0, Duration::ZERO)).is_err());
    assert!(RateLimiter::new(Limit::new(1.0, Duration::from_secs(1)).keys(0)).is_err());
}

#[test]
fn guards_rewrite_messages_cut_anywhere() {
    let guards = Guards::new([Guard::masking([Builtin::Email])]).unwrap();
    let message = br#"{"model":"m","messages":[{"role":"user","content":"ada\u0040example.com ada@example.com"}],"stream":true}"#;
    for cut in 0..message.len() {
        let mut rewriter = guards.rewriter(Format::Completions, Kind::Request).unwrap();
        let mut masked = rewriter.push(&message[..cut]).unwrap();
        masked.extend(rewriter.end(&message[cut..]).unwrap());
        let masked = String::from_utf8(masked).unwrap();
        assert!(
            masked.contains("<EMAIL_ADDRESS> <EMAIL_ADDRESS>"),
            "{masked}"
        );
        let details = rewriter.details().unwrap();
        assert_eq!(
            (details.model.as_deref(), details.is_stream),
            (Some("m"), true)
        );
        assert_eq!((details.rejected_by, details.input_tokens), (None, None));
    }
}

#[test]
fn guards_reject_messages_and_refuse_what_they_cannot_read() {
    let guards = Guards::new([Guard::rejecting(["forbidden"])]).unwrap();
    let rewrite = |text: &str| guards.rewrite(Format::Completions, Kind::Request, text.as_bytes());
    let rejected = rewrite(r#"{"messages":[{"role":"user","content":"forbidden"}]}"#);
    assert_eq!(
        rejected,
        Err(Error::Rejected {
            kind: Kind::Request,
            guard: 0
        })
    );
    for text in ["", "{", "[]", r#"{"messages":"x","messages":"y"}"#] {
        assert!(
            matches!(rewrite(text), Err(Error::Unreadable { .. })),
            "{text}"
        );
    }
}

#[test]
fn errors_name_the_place_in_a_pattern() {
    let wanted = Error::Pattern {
        pattern: "ab(?=c)".into(),
        offset: 2,
        code: "REGEX_LOOKAROUND",
    };
    assert_eq!(Mask::new(["ab(?=c)"]).err(), Some(wanted.clone()));
    let route = Route {
        path: "ab(?=c)".into(),
        path_type: PathType::Regex,
        ..Route::default()
    };
    assert_eq!(Router::new(vec![route]).err(), Some(wanted));
}
