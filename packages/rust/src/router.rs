use crate::abi;
use crate::error::{Error, Result};
use crate::instance::Core;
use crate::pattern::compile_pattern;
use crate::pool::{CORE, Object};
use std::sync::Arc;
use wasmtime::Val;

/// How the path of a route matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathType {
    /// Whole segments.
    #[default]
    Prefix,
    Exact,
    Regex,
}

/// A condition on a header or on a query parameter.
#[derive(Clone, Debug, Default)]
pub struct Field {
    pub name: String,
    pub value: String,
    /// The value is a regular expression that matches the whole value.
    pub is_pattern: bool,
}

/// A row of a [`Router`]. A condition that is empty is always met.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// What [`Router::find`] returns. It must not be negative.
    pub id: i32,
    /// An empty path is `/`.
    pub path: String,
    pub path_type: PathType,
    /// May begin with `*.`.
    pub hostname: String,
    pub method: String,
    pub headers: Vec<Field>,
    pub query: Vec<Field>,
    /// Of routes that match equally well, the older one wins, then the one whose name comes first.
    pub created: f64,
    pub name: String,
    /// These decide after the name.
    pub rule_index: i32,
    pub match_index: i32,
    /// The scope of the listener whose requests see the route.
    pub scope: i32,
}

/// Gives the requests for a hostname a scope. An empty hostname is any host.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    pub hostname: String,
    pub scope: i32,
}

/// What routes are matched against.
#[derive(Clone, Debug)]
pub struct Request {
    method: Vec<u8>,
    target: Vec<u8>,
    host: Vec<u8>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Request {
    /// The target is the path, and the query if there is one.
    pub fn new(method: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Request {
        Request {
            method: method.as_ref().to_vec(),
            target: target.as_ref().to_vec(),
            host: b"localhost".to_vec(),
            headers: Vec::new(),
        }
    }

    /// Sets the host, which may have a port.
    pub fn host(mut self, host: impl AsRef<[u8]>) -> Request {
        self.host = host.as_ref().to_vec();
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Request {
        let field = (name.as_ref().to_vec(), value.as_ref().to_vec());
        self.headers.push(field);
        self
    }
}

/// Selects a route for a request, with the precedence of the Gateway API.
#[derive(Clone)]
pub struct Router(Arc<Object>);

impl Router {
    /// Compiles routes, for requests to any host.
    pub fn new(routes: Vec<Route>) -> Result<Router> {
        Router::with_listeners(routes, vec![Listener::default()])
    }

    /// Compiles routes, which see the requests for listeners of their scope.
    pub fn with_listeners(routes: Vec<Route>, listeners: Vec<Listener>) -> Result<Router> {
        let build = move |core: &mut Core| {
            let table = core.checked("creating a table", "table_new", &[])?;
            let filled = fill(core, table, &routes, &listeners);
            core.or_free(filled, "table_free", table)
        };
        Ok(Router(Object::new(&CORE, "table_free", build)?))
    }

    /// The id of the route for a request.
    pub fn find(&self, request: &Request) -> Result<Option<i32>> {
        self.0.run(|core, table| {
            let record = Head::put(core, request)?;
            let arguments = [Val::I32(table), Val::I32(record as i32)];
            match core.call("match_request", &arguments)? {
                abi::NO_ROUTE | abi::NO_LISTENER => Ok(None),
                code if code < 0 => Err(Error::core("matching", code)),
                id => Ok(Some(id)),
            }
        })
    }
}

fn fill(core: &mut Core, table: i32, routes: &[Route], listeners: &[Listener]) -> Result<()> {
    for Listener { hostname, scope } in listeners {
        let (kind, host) = host_key(hostname);
        let [place, length] = core.put(host.as_bytes())?;
        let (table, scope) = (Val::I32(table), Val::I32(*scope));
        let arguments = [table, Val::I32(kind), place, length, scope];
        core.checked("adding a listener", "listener_add", &arguments)?;
    }
    for route in routes {
        let specification = Specification::of(core, route)?;
        let [place, size] = core.put(&specification.0)?;
        core.checked(
            "adding a route",
            "route_add",
            &[Val::I32(table), place, size],
        )?;
    }
    Ok(())
}

/// The kind of a hostname, and its bytes: those of a wildcard begin with the dot.
fn host_key(hostname: &str) -> (i32, &str) {
    match hostname {
        "" => (abi::HOST_ANY, ""),
        wildcard if wildcard.starts_with("*.") => (abi::HOST_WILDCARD, &wildcard[1..]),
        _ => (abi::HOST_EXACT, hostname),
    }
}

/// Fixed words first. Texts follow, and are named by offset and length.
struct Specification(Vec<u8>);

impl Specification {
    fn word(&mut self, offset: i32, value: i32) {
        let offset = offset as usize;
        self.0[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, offset: i32, text: &str) {
        self.word(offset, self.0.len() as i32);
        self.word(offset + 4, text.len() as i32);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn of(core: &mut Core, route: &Route) -> Result<Specification> {
        let fields: Vec<&Field> = route.headers.iter().chain(&route.query).collect();
        let size = abi::ROUTE_PREDICATES + fields.len() as i32 * abi::PREDICATE_SIZE;
        let mut spec = Specification(vec![0; size as usize]);
        let path = if route.path.is_empty() {
            "/"
        } else {
            &route.path
        };
        let path_kind = match route.path_type {
            PathType::Prefix => abi::PATH_PREFIX,
            PathType::Exact => abi::PATH_EXACT,
            PathType::Regex => abi::PATH_REGEX,
        };
        let (host_kind, host) = host_key(&route.hostname);
        spec.word(abi::ROUTE_ID, route.id);
        spec.word(abi::ROUTE_SCOPE, route.scope);
        spec.word(abi::ROUTE_HOST_KIND, host_kind);
        spec.text(abi::ROUTE_HOST, host);
        spec.word(abi::ROUTE_PATH_KIND, path_kind);
        spec.text(abi::ROUTE_PATH, path);
        let regex = pattern(core, path, route.path_type == PathType::Regex)?;
        spec.word(abi::ROUTE_PATH_REGEX, regex);
        let created = abi::ROUTE_CREATED as usize;
        spec.0[created..created + 8].copy_from_slice(&route.created.to_le_bytes());
        match route.name.as_str() {
            "" => spec.text(abi::ROUTE_NAME, &format!("default/{:010}", route.id)),
            name => spec.text(abi::ROUTE_NAME, name),
        }
        spec.word(abi::ROUTE_RULE, route.rule_index);
        spec.word(abi::ROUTE_MATCH, route.match_index);
        spec.text(abi::ROUTE_METHOD, &route.method);
        spec.word(abi::ROUTE_FIELD_COUNT, route.headers.len() as i32);
        spec.word(abi::ROUTE_QUERY_COUNT, route.query.len() as i32);
        for (index, field) in fields.into_iter().enumerate() {
            let at = abi::ROUTE_PREDICATES + index as i32 * abi::PREDICATE_SIZE;
            spec.field(core, at, field)?;
        }
        Ok(spec)
    }

    fn field(&mut self, core: &mut Core, at: i32, field: &Field) -> Result<()> {
        let kind = match field.is_pattern {
            true => abi::PREDICATE_PATTERN,
            false => abi::PREDICATE_EXACT,
        };
        self.word(at + abi::PREDICATE_KIND, kind);
        self.text(at + abi::PREDICATE_NAME, &field.name);
        self.text(at + abi::PREDICATE_VALUE, &field.value);
        let regex = pattern(core, &field.value, field.is_pattern)?;
        self.word(at + abi::PREDICATE_REGEX, regex);
        Ok(())
    }
}

fn pattern(core: &mut Core, pattern: &str, is_pattern: bool) -> Result<i32> {
    if !is_pattern {
        return Ok(0);
    }
    let handle = compile_pattern(core, pattern, abi::REGEX_MATCH_ONLY)?;
    // The table refers to the pattern.
    core.patterns.push(handle);
    Ok(handle)
}

/// A head record in scratch memory.
struct Head<'a> {
    core: &'a mut Core,
    record: u32,
}

impl Head<'_> {
    /// Writes the head of a request as the head reader of the core does.
    fn put(core: &mut Core, request: &Request) -> Result<u32> {
        let count = request.headers.len();
        let record = core.alloc(abi::HEAD_SIZE as usize + count * abi::FIELD_SIZE as usize)?;
        let mut head = Head { core, record };
        // Absent parts are -1 -1.
        head.core.write(record, &[0xff; abi::HEAD_SIZE as usize])?;
        head.word(abi::HEAD_FIELD_COUNT, count as u32)?;
        head.word(abi::HEAD_FIELD_LIMIT, count as u32)?;
        head.word(abi::HEAD_FLAGS, 0)?;
        head.text(abi::HEAD_METHOD, &request.method)?;
        head.text(abi::HEAD_AUTHORITY, &request.host)?;
        head.text(abi::HEAD_HOST, host_of(&request.host))?;
        head.text(abi::HEAD_TARGET, &request.target)?;
        let mut parts = request.target.splitn(2, |byte| *byte == b'?');
        head.text(abi::HEAD_PATH, parts.next().unwrap_or_default())?;
        if let Some(query) = parts.next() {
            head.text(abi::HEAD_QUERY, query)?;
        }
        for (index, (name, value)) in request.headers.iter().enumerate() {
            let at = abi::HEAD_FIELDS + index as i32 * abi::FIELD_SIZE;
            head.text(at + abi::FIELD_NAME, name)?;
            head.text(at + abi::FIELD_VALUE, value)?;
            head.word(at + abi::FIELD_INFO, 0)?;
        }
        Ok(record)
    }

    fn word(&mut self, offset: i32, value: u32) -> Result<()> {
        let place = self.record + offset as u32;
        self.core.write(place, &value.to_le_bytes())
    }

    fn text(&mut self, offset: i32, text: &[u8]) -> Result<()> {
        let start = self.core.alloc(text.len() + 16)?;
        self.core.write(start, text)?;
        self.word(offset, start)?;
        self.word(offset + 4, start + text.len() as u32)
    }
}

/// An authority without its port, and without the dot of an absolute name.
fn host_of(authority: &[u8]) -> &[u8] {
    let last = |byte| authority.iter().rposition(|each| *each == byte);
    let host = match last(b':') {
        Some(colon) if last(b']').is_none_or(|bracket| bracket < colon) => &authority[..colon],
        _ => authority,
    };
    host.strip_suffix(b".").unwrap_or(host)
}
