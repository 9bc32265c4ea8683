//! core.wasm in Rust: linear memory, codes and offsets, with the wasmtime crate alone.

use serde_json::Value;
use std::collections::HashMap;
use wasmtime::{Engine, Instance, Memory, Module, Store, Val};

pub type Failure = Box<dyn std::error::Error>;

/// One instance: one thread at a time. A trap is a bug of the core, and panics.
pub struct Core {
    store: Store<()>,
    instance: Instance,
    memory: Memory,
    pub abi: HashMap<String, i32>,
    /// Handles of loaded vocabularies, by encoding.
    pub vocabularies: HashMap<String, i32>,
}

/// A negative result, and the place in the input that is to blame.
#[derive(Debug, PartialEq)]
pub struct Code(pub i32, pub i32);

impl Core {
    pub fn open(wasm: &str, abi: &str) -> Result<Core, Failure> {
        let described: Value = serde_json::from_str(&std::fs::read_to_string(abi)?)?;
        let constants = described["constants"].as_array().ok_or("no constants")?;
        let constant = |each: &Value| {
            (
                each["name"].as_str().unwrap_or("").to_string(),
                each["value"].as_i64().unwrap_or(0) as i32,
            )
        };
        let engine = Engine::default();
        let module = Module::new(&engine, std::fs::read(wasm)?)?;
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[])?;
        let memory = instance
            .get_memory(&mut store, "memory")
            .ok_or("no memory")?;
        let abi = constants.iter().map(constant).collect();
        let mut core = Core {
            store,
            instance,
            memory,
            abi,
            vocabularies: HashMap::new(),
        };
        if i64::from(core.call("abi_version", &[])) != described["version"] {
            return Err("core.wasm has another ABI version".into());
        }
        Ok(core)
    }

    pub fn call(&mut self, name: &str, arguments: &[Val]) -> i32 {
        let function = self.instance.get_func(&mut self.store, name).expect(name);
        let mut results = vec![Val::I32(0); function.ty(&self.store).results().len()];
        function
            .call(&mut self.store, arguments, &mut results)
            .expect("a trap");
        results.first().map_or(0, Val::unwrap_i32)
    }

    pub fn check(&mut self, result: i32) -> Result<i32, Code> {
        if result >= 0 {
            return Ok(result);
        }
        let offset = self.call("last_error_offset", &[]);
        Err(Code(result, offset))
    }

    /// What `action` allocates is given back in one step.
    pub fn scratch<T>(&mut self, action: impl FnOnce(&mut Core) -> T) -> T {
        let place = self.call("mark", &[]);
        let result = action(self);
        self.call("reset", &[Val::I32(place)]);
        result
    }

    pub fn alloc(&mut self, size: usize) -> u32 {
        let address = self.call("alloc", &[Val::I32(size as i32)]) as u32;
        assert_ne!(address, 0, "no room for {size} bytes");
        address
    }

    /// Address and length of a copy of the bytes, as arguments.
    pub fn put(&mut self, bytes: &[u8]) -> [Val; 2] {
        let address = self.alloc(bytes.len() + 16);
        self.write(address, bytes);
        [Val::I32(address as i32), Val::I32(bytes.len() as i32)]
    }

    pub fn write(&mut self, address: u32, bytes: &[u8]) {
        self.memory
            .write(&mut self.store, address as usize, bytes)
            .expect("inside memory");
    }

    pub fn read(&self, start: u32, end: u32) -> &[u8] {
        &self.memory.data(&self.store)[start as usize..end as usize]
    }

    pub fn word(&self, address: u32) -> i32 {
        i32::from_le_bytes(self.read(address, address + 4).try_into().expect("4 bytes"))
    }

    pub fn double(&self, address: u32) -> f64 {
        f64::from_le_bytes(self.read(address, address + 8).try_into().expect("8 bytes"))
    }

    /// The handle of a regular expression; `flags` are REGEX_*.
    pub fn compile(&mut self, pattern: &str, flags: i32) -> Result<i32, Code> {
        self.scratch(|core| {
            let [address, length] = core.put(pattern.as_bytes());
            let handle = core.call("regex_compile", &[address, length, Val::I32(flags)]);
            core.check(handle)
        })
    }

    /// All matches, in bytes.
    pub fn find_all(
        &mut self,
        regex: i32,
        text: &[u8],
        limit: usize,
    ) -> Result<Vec<[i32; 2]>, Code> {
        self.scratch(|core| {
            let out = core.alloc(limit * 8);
            let [address, length] = core.put(text);
            let rest = [Val::I32(0), Val::I32(out as i32), Val::I32(limit as i32)];
            let arguments = [&[Val::I32(regex), address, length], &rest[..]].concat();
            let found = core.call("regex_find_all", &arguments);
            let count = core.check(found)? as u32;
            Ok((0..count)
                .map(|i| [core.word(out + i * 8), core.word(out + i * 8 + 4)])
                .collect())
        })
    }

    /// `name` is regex_is_match or regex_full_match.
    pub fn test(&mut self, name: &str, regex: i32, text: &[u8]) -> bool {
        self.scratch(|core| {
            let [address, length] = core.put(text);
            core.call(name, &[Val::I32(regex), address, length]) == 1
        })
    }

    /// A mask of rules, where two meet the one that begins first wins.
    pub fn new_mask(&mut self, rules: &[Rule]) -> Result<i32, Code> {
        let made = self.call("mask_new", &[]);
        let set = self.check(made)?;
        for rule in rules {
            let (name, which) = match &rule.finds {
                Finds::Builtin(name) => ("mask_add_builtin", self.abi[name]),
                Finds::Pattern(pattern) => ("mask_add", self.compile(pattern, 0)?),
                Finds::Words(lines) => {
                    self.add_words(set, lines, &rule.replacement)?;
                    continue;
                }
            };
            self.scratch(|core| {
                let [address, length] = core.put(rule.replacement.as_bytes());
                let added = core.call(name, &[Val::I32(set), Val::I32(which), address, length]);
                core.check(added)
            })?;
            if let Finds::Pattern(_) = rule.finds {
                // The set keeps it.
                self.call("regex_free", &[Val::I32(which)]);
            }
        }
        Ok(set)
    }

    fn add_words(&mut self, set: i32, lines: &str, replacement: &str) -> Result<i32, Code> {
        self.scratch(|core| {
            let [words, size] = core.put(lines.as_bytes());
            let [text, length] = core.put(replacement.as_bytes());
            let added = core.call("mask_add_words", &[Val::I32(set), words, size, text, length]);
            core.check(added)
        })
    }

    /// Masks a text that arrives cut at `cuts`; what comes out does not depend on them.
    pub fn mask(&mut self, set: i32, text: &[u8], cuts: &[usize]) -> Result<Vec<u8>, Code> {
        let made = self.call("stream_new", &[Val::I32(set)]);
        let stream = self.check(made)?;
        let mut masked = Vec::new();
        let mut from = 0;
        for index in 0..=cuts.len() {
            let end = cuts.get(index).copied().unwrap_or(text.len());
            let is_end = i32::from(index == cuts.len());
            let count = self.scratch(|core| {
                let [address, length] = core.put(&text[from..end]);
                let pushed = core.call(
                    "stream_push",
                    &[Val::I32(stream), address, length, Val::I32(is_end)],
                );
                core.check(pushed)
            })?;
            let start = self.call("stream_output", &[Val::I32(stream)]) as u32;
            masked.extend_from_slice(self.read(start, start + count as u32));
            from = end;
        }
        self.call("stream_free", &[Val::I32(stream)]);
        Ok(masked)
    }
}

/// What a rule of a mask finds: a builtin (DETECT_*), a regular expression, or words, one a line.
pub enum Finds {
    Builtin(String),
    Pattern(String),
    Words(String),
}

/// What to replace by what.
pub struct Rule {
    pub finds: Finds,
    pub replacement: String,
}
