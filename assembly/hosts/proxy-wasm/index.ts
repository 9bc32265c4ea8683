/**
 * The filter core as a proxy-wasm 0.2.1 filter of Envoy and Istio: what the host calls. Nothing here uses the heap of
 * AssemblyScript, which would begin where the arena of the core does.
 */
import { Bytes } from '../../texts/bytes'
import { onResponseBody, onResponseHeaders, onResponseTrailers } from './answer'
import { readConfig, releaseConfig } from './configure'
import { dropContext, keepContext, recordOfContext } from './contexts'
import { Exchange, freeExchange, newExchange } from './exchange'
import { isGood, problem } from './fields'
import { blockForHost, CONFIGURATION, CONTINUE, LEVEL_ERROR, log, PAUSE, readBuffer } from './host'
import { defineMetrics } from './metrics'
import { onRequestBody, onRequestHeaders, onRequestTrailers } from './request'
import { Config } from './rules'
import { finish } from './usage'

/** Marks the version of the interface. */
export function proxy_abi_version_0_2_1(): void {}

export function proxy_on_memory_allocate(size: i32): usize {
  return blockForHost(size)
}

export function proxy_on_vm_start(_id: i32, _size: i32): i32 {
  defineMetrics()
  return 1
}

/** Records of root contexts are configurations; bit 0 of their address is set. */
const ROOT: usize = 1

function configOf(root: u32): Config {
  return changetype<Config>(recordOfContext(root) & ~ROOT)
}

export function proxy_on_context_create(id: u32, root: u32): void {
  if (root == 0) return
  const config = configOf(root)
  keepContext(id, changetype<usize>(newExchange(config)))
}

const configuration: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

/** A configuration that is wrong is refused; the one before stays. */
export function proxy_on_configure(root: u32, size: i32): i32 {
  if (!readBuffer(CONFIGURATION, size, configuration)) return 0
  const config = readConfig(configuration)
  if (!isGood()) {
    log(LEVEL_ERROR, problem)
    releaseConfig(config)
    return 0
  }
  releaseConfig(configOf(root))
  return keepContext(root, changetype<usize>(config) | ROOT) ? 1 : 0
}

function exchangeOf(id: u32): Exchange {
  return changetype<Exchange>(recordOfContext(id))
}

// A request without a record has lost its configuration to a lack of memory: it must not pass.

export function proxy_on_request_headers(id: u32, _count: i32, end: i32): i32 {
  const exchange = exchangeOf(id)
  return changetype<usize>(exchange) == 0 ? PAUSE : onRequestHeaders(exchange, end != 0)
}

export function proxy_on_request_body(id: u32, size: i32, end: i32): i32 {
  const exchange = exchangeOf(id)
  return changetype<usize>(exchange) == 0 ? PAUSE : onRequestBody(exchange, size, end != 0)
}

export function proxy_on_request_trailers(id: u32, _count: i32): i32 {
  const exchange = exchangeOf(id)
  return changetype<usize>(exchange) == 0 ? PAUSE : onRequestTrailers(exchange)
}

export function proxy_on_response_headers(id: u32, _count: i32, end: i32): i32 {
  const exchange = exchangeOf(id)
  return changetype<usize>(exchange) == 0 ? CONTINUE : onResponseHeaders(exchange, end != 0)
}

export function proxy_on_response_body(id: u32, size: i32, end: i32): i32 {
  const exchange = exchangeOf(id)
  return changetype<usize>(exchange) == 0 ? CONTINUE : onResponseBody(exchange, size, end != 0)
}

export function proxy_on_response_trailers(id: u32, _count: i32): i32 {
  const exchange = exchangeOf(id)
  return changetype<usize>(exchange) == 0 ? CONTINUE : onResponseTrailers(exchange)
}

export function proxy_on_done(_id: u32): i32 {
  return 1
}

export function proxy_on_log(id: u32): void {
  const record = recordOfContext(id)
  if (record != 0 && (record & ROOT) == 0) finish(changetype<Exchange>(record))
}

export function proxy_on_delete(id: u32): void {
  const record = recordOfContext(id)
  dropContext(id)
  if (record == 0) return
  if (record & ROOT) return releaseConfig(changetype<Config>(record & ~ROOT))
  const exchange = changetype<Exchange>(record)
  releaseConfig(exchange.config)
  freeExchange(exchange)
}
