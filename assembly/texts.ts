/**
 * The ABI of core-texts.wasm: patterns, masks, and the texts of requests to models and of their answers. It imports
 * nothing. It is a module of its own because hosts that only need routes, limits or masks should not load it.
 */
import { ABI_VERSION, FEATURE_REGEX, FEATURE_TEXTS } from './abi'

export * from './memory'
export * from './regex/exports'
export * from './texts/exports'

/** ABI_VERSION. A host refuses a module of another version. */
export function abi_version(): i32 {
  return ABI_VERSION
}

/** FEATURE_* bits of what this build holds. */
export function features(): i32 {
  return FEATURE_REGEX | FEATURE_TEXTS
}
