//! Instances of a module for all threads.

use crate::error::{Error, Result};
use crate::instance::{Core, Garbage, Slot};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, TryLockError};
use wasmtime::{Engine, Module};

type Compiled = LazyLock<Result<(Engine, Module)>>;

static CORE_MODULE: Compiled = LazyLock::new(|| compile(include_bytes!("../data/core.wasm")));
static TEXTS_MODULE: Compiled =
    LazyLock::new(|| compile(include_bytes!("../data/core-texts.wasm")));

/// Patterns, masks and routes.
pub(crate) static CORE: LazyLock<Arc<Pool>> = LazyLock::new(|| Pool::of_core(processors()));
/// Texts of messages to models.
pub(crate) static TEXTS: LazyLock<Arc<Pool>> =
    LazyLock::new(|| Arc::new(Pool::new(&TEXTS_MODULE, processors())));
/// Tokens. Each instance has vocabularies of its own, of up to 17 MB, so there are few.
pub(crate) static TOKENS: LazyLock<Arc<Pool>> =
    LazyLock::new(|| Pool::of_core(processors().min(4)));

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn compile(wasm: &[u8]) -> Result<(Engine, Module)> {
    let engine = Engine::default();
    let module =
        Module::new(&engine, wasm).map_err(|error| Error::Trapped(format!("{error:#}")))?;
    Ok((engine, module))
}

struct Slots {
    list: Vec<Arc<Slot>>,
    turn: usize,
}

/// The first instances are preferred, so that a program has no more of them than calls that run at the
/// same time.
pub(crate) struct Pool {
    module: &'static Compiled,
    limit: usize,
    slots: Mutex<Slots>,
}

impl Pool {
    pub fn of_core(limit: usize) -> Arc<Pool> {
        Arc::new(Pool::new(&CORE_MODULE, limit))
    }

    fn new(module: &'static Compiled, limit: usize) -> Pool {
        let slots = Mutex::new(Slots {
            list: Vec::new(),
            turn: 0,
        });
        Pool {
            module,
            limit,
            slots,
        }
    }

    /// Calls `work` with an instance that nothing else uses meanwhile.
    pub fn run<T>(&self, work: impl FnOnce(&mut Core) -> Result<T>) -> Result<T> {
        let (_, result) = self.run_on(Pool::free_slot, work)?;
        Ok(result)
    }

    /// Calls `work` with an instance that `choose` returns. One that has trapped since is replaced.
    fn run_on<T>(
        &self,
        choose: impl Fn(&Pool) -> Result<Arc<Slot>>,
        work: impl FnOnce(&mut Core) -> Result<T>,
    ) -> Result<(Arc<Slot>, T)> {
        loop {
            let slot = choose(self)?;
            let mut core = slot.lock();
            if core.trapped {
                drop(core);
                self.discard(&slot);
                continue;
            }
            let result = slot.run(&mut core, work);
            let trapped = core.trapped;
            drop(core);
            if trapped {
                self.discard(&slot);
            }
            return result.map(|value| (slot, value));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free_slot(&self) -> Result<Arc<Slot>> {
        let mut slots = self.lock();
        let is_free =
            |slot: &&Arc<Slot>| !matches!(slot.core.try_lock(), Err(TryLockError::WouldBlock));
        match slots.list.iter().find(is_free) {
            Some(free) => Ok(free.clone()),
            None => self.next(&mut slots),
        }
    }

    /// Returns a new instance until there are enough, and then each in turn.
    fn next(&self, slots: &mut Slots) -> Result<Arc<Slot>> {
        if slots.list.len() < self.limit {
            let (engine, module) = self.module.as_ref().map_err(Error::clone)?;
            let slot = Arc::new(Slot::new(engine, module)?);
            slots.list.push(slot.clone());
            return Ok(slot);
        }
        slots.turn = (slots.turn + 1) % slots.list.len();
        Ok(slots.list[slots.turn].clone())
    }

    fn discard(&self, slot: &Arc<Slot>) {
        self.lock().list.retain(|each| !Arc::ptr_eq(each, slot));
    }

    /// Opens a handle in one instance, such as the state of a stream. Streams are spread over the
    /// instances.
    pub fn open(
        self: &Arc<Pool>,
        free: &'static str,
        build: impl FnOnce(&mut Core) -> Result<i32>,
    ) -> Result<Session> {
        let (slot, handle) = self.run_on(|pool| pool.next(&mut pool.lock()), build)?;
        Ok(Session {
            pool: self.clone(),
            slot,
            free,
            handle,
        })
    }

    /// The number of compiled objects in all instances.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        let slots = self.lock().list.clone();
        let kept = |slot: &Arc<Slot>| slot.run(&mut slot.lock(), |core| Ok(core.kept()));
        slots.iter().map(|slot| kept(slot).unwrap_or(0)).sum()
    }
}

type Build = Box<dyn Fn(&mut Core) -> Result<i32> + Send + Sync>;

/// Something that instances keep under a handle. Each instance compiles it when it first needs it.
pub(crate) struct Object {
    pub pool: Arc<Pool>,
    id: u64,
    free: &'static str,
    build: Build,
}

impl Object {
    /// Builds in one instance at once, so that the caller gets the errors of what was given.
    pub fn new(
        pool: &Arc<Pool>,
        free: &'static str,
        build: impl Fn(&mut Core) -> Result<i32> + Send + Sync + 'static,
    ) -> Result<Arc<Object>> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let object = Object {
            pool: pool.clone(),
            id: LAST.fetch_add(1, Ordering::Relaxed),
            free,
            build: Box::new(build),
        };
        object.run(|_, _| Ok(()))?;
        Ok(Arc::new(object))
    }

    pub fn handle(&self, core: &mut Core) -> Result<i32> {
        core.handle(self.id, &self.build)
    }

    /// Calls `work` with an instance and the handle there.
    pub fn run<T>(&self, work: impl FnOnce(&mut Core, i32) -> Result<T>) -> Result<T> {
        self.pool.run(|core| {
            let handle = self.handle(core)?;
            work(core, handle)
        })
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let (id, free) = (self.id, self.free);
        for slot in &self.pool.lock().list {
            slot.later(Garbage::Compiled { id, free });
        }
    }
}

/// A handle that exists in one instance only.
pub(crate) struct Session {
    pool: Arc<Pool>,
    slot: Arc<Slot>,
    free: &'static str,
    handle: i32,
}

impl Session {
    pub fn run<T>(&self, work: impl FnOnce(&mut Core, i32) -> Result<T>) -> Result<T> {
        let mut core = self.slot.lock();
        let result = self.slot.run(&mut core, |core| work(core, self.handle));
        let trapped = core.trapped;
        drop(core);
        if trapped {
            self.pool.discard(&self.slot);
        }
        result
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.handle != 0 {
            let (handle, free) = (self.handle, self.free);
            self.slot.later(Garbage::Handle { handle, free });
        }
    }
}

#[cfg(test)]
#[path = "pool_test.rs"]
mod tests;
