/**
 * The ABI of core.wasm: every export, and only exports. Conventions stand in abi.ts. The module
 * imports nothing and may be instantiated any number of times; each instance has its own memory.
 *
 * One module serves two roles. An *I/O instance* has sockets reading straight into its memory, so
 * its views must never detach: its host calls `reserve` with the whole budget, then `seal`, and from
 * then on a call that finds no room returns ERROR_MEMORY (or address 0). Other instances just grow.
 * The maximum in the module itself stays open, because one module cannot have two.
 */
import {
  ABI_VERSION,
  FEATURE_HEAD,
  FEATURE_RATE,
  FEATURE_REGEX,
  FEATURE_ROUTES,
  FEATURE_TOKENS,
} from './abi'
import { readChunks, startChunks } from './match/chunks'
import { readRequest, readResponse, readTrailers } from './match/head'
import {
  addListener,
  addRoute,
  countRoutes,
  createTable,
  freeTable,
  removeListener,
  removeRoute,
} from './match/routes'
import { matchListener, matchRequest, matchRoute } from './match/select'

export * from './memory'
export * from './digest/exports'
export * from './rate/exports'
export * from './regex/exports'
export * from './tokens/exports'

/** ABI_VERSION. A host refuses a module of another version. */
export function abi_version(): i32 {
  return ABI_VERSION
}

/** FEATURE_* bits of what this build holds. */
export function features(): i32 {
  return FEATURE_HEAD | FEATURE_ROUTES | FEATURE_REGEX | FEATURE_RATE | FEATURE_TOKENS
}

/**
 * Reads a request head from [start, end) into `record`. 0: complete. INCOMPLETE: call again with
 * more bytes after the same ones, `resume` being HEAD_RESUME of this call (0 at first). Any other
 * code: refused with status -code / 100. `max_bytes` bounds the head.
 */
export function head_request(
  record: usize,
  start: usize,
  end: usize,
  resume: i32,
  max_bytes: i32,
): i32 {
  return readRequest(record, start, end, resume, max_bytes)
}

/** The same for a response head; refusals are ERROR_RESPONSE - reason. */
export function head_response(
  record: usize,
  start: usize,
  end: usize,
  resume: i32,
  max_bytes: i32,
): i32 {
  return readResponse(record, start, end, resume, max_bytes)
}

/** Reads whole trailer field lines from [start, end), without the empty one: 0, or a refusal. */
export function head_trailers(record: usize, start: usize, end: usize): i32 {
  return readTrailers(record, start, end)
}

/** A chunked body begins: 0, or ERROR_ARGUMENT. */
export function chunks_start(body: usize, trailer_limit: i32): i32 {
  return startChunks(body, trailer_limit)
}

/** Reads [start, end) of a chunked body: CHUNKS_*, or a refusal after which it cannot go on. */
export function chunks_read(body: usize, start: usize, end: usize): i32 {
  return readChunks(body, start, end)
}

/** A table of listeners and routes: a handle, or ERROR_MEMORY. */
export function table_new(): i32 {
  return createTable()
}

/** Frees a table and all in it: 0, or ERROR_ARGUMENT. */
export function table_free(table: i32): i32 {
  return freeTable(table)
}

/** Adds a listener hostname (HOST_* kind; a wildcard's bytes begin with its dot) for a scope. */
export function listener_add(table: i32, kind: i32, host: usize, length: i32, scope: i32): i32 {
  return addListener(table, kind, host, length, scope)
}

/** Removes a listener hostname: 0, ERROR_ARGUMENT or ERROR_UNKNOWN. Routes of its scope stay. */
export function listener_remove(table: i32, kind: i32, host: usize, length: i32): i32 {
  return removeListener(table, kind, host, length)
}

/** Adds the route of a specification (ROUTE_*) of `size` bytes; the bytes are copied. */
export function route_add(table: i32, spec: usize, size: i32): i32 {
  return addRoute(table, spec, size)
}

/** Removes a route: 0, ERROR_ARGUMENT or ERROR_UNKNOWN. */
export function route_remove(table: i32, id: i32): i32 {
  return removeRoute(table, id)
}

/** How many routes the table holds. */
export function route_count(table: i32): i32 {
  return countRoutes(table)
}

/** The scope of the listener for the record's host: >= 0, NO_LISTENER or ERROR_ARGUMENT. */
export function match_listener(table: i32, record: usize): i32 {
  return matchListener(table, record)
}

/** The id of the route for the record in a scope: >= 0, NO_ROUTE or ERROR_ARGUMENT. */
export function match_route(table: i32, scope: i32, record: usize): i32 {
  return matchRoute(table, scope, record)
}

/** Listener and route in one: id >= 0, NO_LISTENER, NO_ROUTE or ERROR_ARGUMENT. */
export function match_request(table: i32, record: usize): i32 {
  return matchRequest(table, record)
}
