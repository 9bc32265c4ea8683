/**
 * The ABI of core-rate-shared.wasm: rate buckets alone, in memory that the host makes and gives to
 * one instance in each of its threads. Its one import is that memory, `env.memory`, shared.
 *
 * It has no static data: a data segment would be written again by every instantiation, over what the
 * others are using. Globals are private to each instance.
 */
import { ABI_VERSION, FEATURE_RATE } from './abi'
import { lastCode } from './refusal'

export * from './rate/exports'

/** ABI_VERSION. A host refuses a module of another version. */
export function abi_version(): i32 {
  return ABI_VERSION
}

/** FEATURE_RATE. */
export function features(): i32 {
  return FEATURE_RATE
}

/** The code of the last call that was refused. */
export function last_error(): i32 {
  return lastCode()
}
