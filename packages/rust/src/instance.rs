//! One instance of a module: calls, memory and scratch space.

use crate::abi;
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wasmtime::{Engine, Func, Instance, Memory, Module, Store, Val};

/// The handle of a compiled object, with the handles of patterns that it refers to.
struct Kept {
    handle: i32,
    patterns: Vec<i32>,
}

/// What is freed before an instance is used again.
pub(crate) enum Garbage {
    Compiled { id: u64, free: &'static str },
    Handle { handle: i32, free: &'static str },
}

pub(crate) struct Core {
    store: Store<()>,
    instance: Instance,
    memory: Memory,
    functions: HashMap<&'static str, (Func, usize)>,
    /// The memory cannot be trusted any more.
    pub trapped: bool,
    kept: HashMap<u64, Kept>,
    /// Patterns to which the object refers that is being compiled.
    pub patterns: Vec<i32>,
}

fn trap(reason: impl ToString) -> Error {
    Error::Trapped(reason.to_string())
}

impl Core {
    fn new(engine: &Engine, module: &Module) -> Result<Core> {
        let mut store = Store::new(engine, ());
        let instance = Instance::new(&mut store, module, &[]).map_err(trap)?;
        let memory = instance
            .get_memory(&mut store, "memory")
            .ok_or_else(|| trap("no memory"))?;
        let mut core = Core {
            store,
            instance,
            memory,
            functions: HashMap::new(),
            trapped: false,
            kept: HashMap::new(),
            patterns: Vec::new(),
        };
        match core.call("abi_version", &[])? {
            abi::ABI_VERSION => Ok(core),
            _ => Err(trap("the module has another ABI version than this crate")),
        }
    }

    /// Runs an export.
    pub fn call(&mut self, name: &'static str, arguments: &[Val]) -> Result<i32> {
        if self.trapped {
            return Err(trap("an earlier call trapped"));
        }
        let (function, results) = match self.functions.get(name) {
            Some(known) => *known,
            None => {
                let function = self.instance.get_func(&mut self.store, name);
                let function = function.ok_or_else(|| trap(name))?;
                let results = function.ty(&self.store).results().len();
                self.functions.insert(name, (function, results));
                (function, results)
            }
        };
        let mut result = [Val::I32(0)];
        let called = function.call(&mut self.store, arguments, &mut result[..results]);
        if let Err(error) = called {
            self.trapped = true;
            return Err(Error::Trapped(format!("{name}: {error:#}")));
        }
        Ok(result[0].i32().unwrap_or(0))
    }

    /// Runs an export whose negative results are error codes.
    pub fn checked(
        &mut self,
        action: &'static str,
        name: &'static str,
        arguments: &[Val],
    ) -> Result<i32> {
        match self.call(name, arguments)? {
            code if code < 0 => Err(Error::core(action, code)),
            result => Ok(result),
        }
    }

    /// Returns a new handle, or frees it if what followed has failed.
    pub fn or_free<T>(&mut self, done: Result<T>, free: &'static str, handle: i32) -> Result<i32> {
        match done {
            Ok(_) => Ok(handle),
            Err(error) => {
                // The first error says more.
                let _ = self.call(free, &[Val::I32(handle)]);
                Err(error)
            }
        }
    }

    /// Allocates memory that is freed when the work of `run` ends.
    pub fn alloc(&mut self, size: usize) -> Result<u32> {
        self.allocate("alloc", size)
    }

    /// Allocates memory that lives until `block_free`.
    pub fn block(&mut self, size: usize) -> Result<u32> {
        self.allocate("block_new", size)
    }

    fn allocate(&mut self, function: &'static str, size: usize) -> Result<u32> {
        let address = match i32::try_from(size) {
            Ok(size) => self.call(function, &[Val::I32(size)])? as u32,
            Err(_) => 0,
        };
        match address {
            0 => Err(Error::core("allocating memory", abi::ERROR_MEMORY)),
            _ => Ok(address),
        }
    }

    /// Copies bytes into scratch memory, followed by the bytes that the core may read beyond them. Returns
    /// the arguments (address, length).
    pub fn put(&mut self, bytes: &[u8]) -> Result<[Val; 2]> {
        let address = self.alloc(bytes.len().saturating_add(16))?;
        self.write(address, bytes)?;
        Ok([Val::I32(address as i32), Val::I32(bytes.len() as i32)])
    }

    pub fn write(&mut self, address: u32, bytes: &[u8]) -> Result<()> {
        self.memory
            .write(&mut self.store, address as usize, bytes)
            .map_err(trap)
    }

    pub fn read(&self, address: u32, size: usize) -> Result<&[u8]> {
        let start = address as usize;
        let memory = self.memory.data(&self.store);
        memory
            .get(start..start.saturating_add(size))
            .ok_or_else(|| trap("a read outside of the memory"))
    }

    pub fn word(&self, address: u32) -> Result<i32> {
        let bytes = self.read(address, 4)?.try_into().map_err(trap)?;
        Ok(i32::from_le_bytes(bytes))
    }

    pub fn double(&self, address: u32) -> Result<f64> {
        let bytes = self.read(address, 8)?.try_into().map_err(trap)?;
        Ok(f64::from_le_bytes(bytes))
    }

    /// The handle of a compiled object, which is built when the instance first needs it.
    pub fn handle(&mut self, id: u64, build: impl Fn(&mut Core) -> Result<i32>) -> Result<i32> {
        if let Some(kept) = self.kept.get(&id) {
            return Ok(kept.handle);
        }
        self.patterns.clear();
        let built = build(self);
        let patterns = std::mem::take(&mut self.patterns);
        match built {
            Ok(handle) => {
                self.kept.insert(id, Kept { handle, patterns });
                Ok(handle)
            }
            Err(error) => {
                let _ = self.free_patterns(&patterns);
                Err(error)
            }
        }
    }

    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    fn free_patterns(&mut self, patterns: &[i32]) -> Result<()> {
        patterns.iter().try_for_each(|handle| {
            self.call("regex_free", &[Val::I32(*handle)])?;
            Ok(())
        })
    }

    fn free(&mut self, garbage: Garbage) -> Result<()> {
        match garbage {
            Garbage::Handle { handle, free } => {
                self.call(free, &[Val::I32(handle)])?;
            }
            Garbage::Compiled { id, free } => {
                if let Some(kept) = self.kept.remove(&id) {
                    self.call(free, &[Val::I32(kept.handle)])?;
                    self.free_patterns(&kept.patterns)?;
                }
            }
        }
        Ok(())
    }
}

/// An instance with its lock, and what is to be freed in it.
pub(crate) struct Slot {
    pub core: Mutex<Core>,
    garbage: Mutex<Vec<Garbage>>,
}

impl Slot {
    pub fn new(engine: &Engine, module: &Module) -> Result<Slot> {
        Ok(Slot {
            core: Mutex::new(Core::new(engine, module)?),
            garbage: Mutex::default(),
        })
    }

    /// An instance in which a call panicked counts as one that has trapped.
    pub fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(|poisoned| {
            let mut core = poisoned.into_inner();
            core.trapped = true;
            core
        })
    }

    pub fn later(&self, garbage: Garbage) {
        let mut list = self.garbage.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(garbage);
    }

    /// Calls `work`, and frees the scratch memory that it has allocated.
    pub fn run<T>(&self, core: &mut Core, work: impl FnOnce(&mut Core) -> Result<T>) -> Result<T> {
        let garbage = {
            let mut list = self.garbage.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *list)
        };
        garbage.into_iter().try_for_each(|each| core.free(each))?;
        let mark = core.call("mark", &[])?;
        let result = work(core);
        if !core.trapped {
            core.call("reset", &[Val::I32(mark)])?;
        }
        result
    }
}
