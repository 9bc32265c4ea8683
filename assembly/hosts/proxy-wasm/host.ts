// The host's side of proxy-wasm 0.2.1: imports, and thin wrappers that free what the host hands over.
import { blockAlloc, blockFree } from '../../arena'
import { append, appendAscii, Bytes, clear, newBytes, push } from '../../texts/bytes'

@external('env', 'proxy_log') declare function proxy_log(level: i32, text: usize, length: i32): i32
@external('env', 'proxy_get_buffer_bytes') declare function proxy_get_buffer_bytes(kind: i32, start: i32, max: i32, out: usize, size: usize): i32
@external('env', 'proxy_set_buffer_bytes') declare function proxy_set_buffer_bytes(kind: i32, start: i32, length: i32, data: usize, size: i32): i32
@external('env', 'proxy_get_header_map_value') declare function proxy_get_header_map_value(map: i32, key: usize, length: i32, out: usize, size: usize): i32
@external('env', 'proxy_replace_header_map_value') declare function proxy_replace_header_map_value(map: i32, key: usize, length: i32, value: usize, size: i32): i32
@external('env', 'proxy_add_header_map_value') declare function proxy_add_header_map_value(map: i32, key: usize, length: i32, value: usize, size: i32): i32
@external('env', 'proxy_remove_header_map_value') declare function proxy_remove_header_map_value(map: i32, key: usize, length: i32): i32
@external('env', 'proxy_send_local_response') declare function proxy_send_local_response(status: i32, details: usize, detailsLength: i32, body: usize, bodyLength: i32, headers: usize, headersLength: i32, grpc: i32): i32
@external('env', 'proxy_get_shared_data') declare function proxy_get_shared_data(key: usize, length: i32, out: usize, size: usize, cas: usize): i32
@external('env', 'proxy_set_shared_data') declare function proxy_set_shared_data(key: usize, length: i32, value: usize, size: i32, cas: i32): i32
@external('env', 'proxy_define_metric') declare function proxy_define_metric(type: i32, name: usize, length: i32, out: usize): i32
@external('env', 'proxy_increment_metric') declare function proxy_increment_metric(id: i32, by: i64): i32
@external('env', 'proxy_set_property') declare function proxy_set_property(path: usize, length: i32, value: usize, size: i32): i32
@external('env', 'proxy_get_current_time_nanoseconds') declare function proxy_get_current_time_nanoseconds(out: usize): i32

export const REQUEST_BODY: i32 = 0
export const RESPONSE_BODY: i32 = 1
export const CONFIGURATION: i32 = 7
export const REQUEST_HEADERS: i32 = 0
export const RESPONSE_HEADERS: i32 = 2
export const CONTINUE: i32 = 0
export const PAUSE: i32 = 1
export const LEVEL_WARN: i32 = 3
export const LEVEL_ERROR: i32 = 4
const OK: i32 = 0

/** Where the host writes results of a call. */
const RESULT: usize = memory.data(32)
const NOTHING: usize = memory.data(32)
const ascii: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

/** An address for texts of length 0 and up, never 0. */
function addressOf(bytes: Bytes): usize {
  return bytes.used == 0 ? NOTHING : bytes.data
}

function toAscii(text: string): void {
  clear(ascii)
  appendAscii(ascii, text)
}

/** Takes what the host has put into a block of this module, and frees the block. */
function takeResult(out: Bytes): void {
  const block = <usize>load<u32>(RESULT)
  if (block == 0) return
  append(out, block, load<i32>(RESULT, 4))
  blockFree(block)
}

function noResult(): void {
  store<u64>(RESULT, 0)
  store<u64>(RESULT, 0, 8)
}

export function log(level: i32, text: Bytes): void {
  proxy_log(level, addressOf(text), text.used)
}

/** The body or the configuration; false if there is none. */
export function readBuffer(kind: i32, size: i32, out: Bytes): bool {
  clear(out)
  if (size <= 0) return true
  noResult()
  const code = proxy_get_buffer_bytes(kind, 0, size, RESULT, RESULT + 4)
  takeResult(out)
  return code == OK && out.used == size
}

/** Puts bytes in place of the `size` bytes of the buffer. */
export function replaceBuffer(kind: i32, size: i32, from: usize, length: i32): bool {
  return proxy_set_buffer_bytes(kind, 0, size, length == 0 ? NOTHING : from, length) == OK
}

/** The value of a header field, several joined by commas; false if it is absent. */
export function readHeader(map: i32, name: string, out: Bytes): bool {
  toAscii(name)
  return readHeaderBytes(map, ascii.data, ascii.used, out)
}

export function readHeaderBytes(map: i32, name: usize, length: i32, out: Bytes): bool {
  clear(out)
  noResult()
  const code = proxy_get_header_map_value(map, name, length, RESULT, RESULT + 4)
  takeResult(out)
  return code == OK
}

export function setHeader(map: i32, name: string, value: Bytes): void {
  toAscii(name)
  proxy_replace_header_map_value(map, ascii.data, ascii.used, addressOf(value), value.used)
}

export function removeHeader(map: i32, name: string): void {
  toAscii(name)
  proxy_remove_header_map_value(map, ascii.data, ascii.used)
}

export const CHANGE_SET: i32 = 0
export const CHANGE_ADD: i32 = 1
export const CHANGE_REMOVE: i32 = 2

export function changeHeader(map: i32, what: i32, name: usize, nameLength: i32, value: usize, length: i32): void {
  if (what == CHANGE_REMOVE) proxy_remove_header_map_value(map, name, nameLength)
  else if (what == CHANGE_SET) proxy_replace_header_map_value(map, name, nameLength, value, length)
  else proxy_add_header_map_value(map, name, nameLength, value, length)
}

/** Header fields for a response of the filter, in the form of the ABI. */
@unmanaged
export class Fields {
  sizes: Bytes
  texts: Bytes
  count: i32
}

export function newFields(): Fields {
  const fields = changetype<Fields>(blockAlloc(offsetof<Fields>()))
  fields.sizes = newBytes()
  fields.texts = newBytes()
  fields.count = 0
  return fields
}

export function clearFields(fields: Fields): void {
  clear(fields.sizes)
  clear(fields.texts)
  fields.count = 0
}

export function addField(fields: Fields, name: string, value: Bytes): void {
  store<i32>(push(fields.sizes, 4), name.length)
  store<i32>(push(fields.sizes, 4), value.used)
  appendAscii(fields.texts, name)
  push(fields.texts, 1)
  append(fields.texts, value.data, value.used)
  push(fields.texts, 1)
  fields.count++
}

const encoded: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

/** Answers the request in place of the upstream. `details` goes to access logs. */
export function respond(status: i32, details: string, body: Bytes, fields: Fields): void {
  clear(encoded)
  store<i32>(push(encoded, 4), fields.count)
  append(encoded, fields.sizes.data, fields.sizes.used)
  append(encoded, fields.texts.data, fields.texts.used)
  toAscii(details)
  proxy_send_local_response(status, ascii.data, ascii.used, addressOf(body), body.used, encoded.data, encoded.used, -1)
}

/** Nanoseconds since 1970. */
export function now(): i64 {
  return proxy_get_current_time_nanoseconds(RESULT) == OK ? load<i64>(RESULT) : 0
}

/** Makes a property of the request available to access logs. */
export function setProperty(path: string, value: Bytes): void {
  toAscii(path)
  proxy_set_property(ascii.data, ascii.used, addressOf(value), value.used)
}

/** Id of a counter. */
export function defineCounter(name: string): i32 {
  toAscii(name)
  store<i32>(RESULT, 0)
  proxy_define_metric(0, ascii.data, ascii.used, RESULT)
  return load<i32>(RESULT)
}

export function count(metric: i32, by: i64): void {
  if (by > 0) proxy_increment_metric(metric, by)
}

/** Number of the stored value that `shareNumber` compares. */
export let shareCas: i32 = 0

/** A number that workers share; -1 if the key is new, -2 after a failure. */
export function sharedNumber(key: Bytes): i64 {
  noResult()
  const code = proxy_get_shared_data(key.data, key.used, RESULT, RESULT + 4, RESULT + 8)
  shareCas = load<i32>(RESULT, 8)
  if (code == 1) return -1
  const block = <usize>load<u32>(RESULT)
  const isWhole = code == OK && block != 0 && load<i32>(RESULT, 4) == 8
  const value = isWhole ? load<i64>(block) : -2
  if (block != 0) blockFree(block)
  return value
}

/** Stores a number unless another worker has stored one since `cas`; false if it has. */
export function shareNumber(key: Bytes, value: i64, cas: i32): bool {
  store<i64>(RESULT, value, 16)
  return proxy_set_shared_data(key.data, key.used, RESULT + 16, 8, cas) == OK
}

/** A block for the host to write to; the module frees it. */
export function blockForHost(size: i32): usize {
  return blockAlloc(<usize>max(size, 16))
}

