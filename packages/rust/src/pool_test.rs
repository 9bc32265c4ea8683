use super::{CORE, Object, Pool};
use crate::{Builtin, Error, Mask, MaskWriter, PathType, Route, Router};
use std::io::Write;
use std::sync::Arc;
use wasmtime::Val;

/// Gives back a block that was never given out.
fn trap(core: &mut crate::instance::Core) -> crate::Result<i32> {
    core.call("block_free", &[Val::I32(-64)])
}

#[test]
fn an_instance_that_traps_is_replaced() {
    let pool = Pool::of_core(1);
    let object = Object::new(&pool, "mask_free", |core| core.call("mask_new", &[])).unwrap();
    let stream = |core: &mut _| object.handle(core);
    let session = pool.open("mask_free", stream).unwrap();
    assert!(matches!(
        session.run(|core, _| trap(core)),
        Err(Error::Trapped(_))
    ));
    assert!(matches!(session.run(|_, _| Ok(())), Err(Error::Trapped(_))));
    drop(session);
    object.run(|core, _| core.call("abi_version", &[])).unwrap();
}

#[test]
fn no_stream_opens_on_an_instance_that_has_just_trapped() {
    let pool = Pool::of_core(1);
    let slot = pool.free_slot().unwrap();
    // The call that trapped has not replaced the instance yet.
    slot.run(&mut slot.lock(), trap).unwrap_err();
    let session = pool.open("mask_free", |core| core.call("mask_new", &[]));
    session.unwrap().run(|_, _| Ok(())).unwrap();
}

#[test]
fn handles_are_freed_with_their_objects() {
    let pool: &Arc<Pool> = &CORE;
    let mask = Mask::new([Builtin::Email]).unwrap();
    for number in 0..50 {
        let mask = Mask::new([format!("pattern {number}").as_str()]).unwrap();
        let mut writer = MaskWriter::new(Vec::new(), &mask).unwrap();
        writer.write_all(b"text").unwrap();
        let route = Route {
            path: "/a+".into(),
            path_type: PathType::Regex,
            ..Route::default()
        };
        Router::new(vec![route]).unwrap();
    }
    mask.mask("text").unwrap();
    let kept = pool.kept();
    assert!((1..10).contains(&kept), "{kept} objects are left");
}
