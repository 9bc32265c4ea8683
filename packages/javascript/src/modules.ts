/** The WebAssembly modules. Takes the place of `src/engines/core/load.ts` in bundles of this package. */

import { ABI_VERSION } from '../../../src/engines/core/abi.ts'
import type { CoreExports } from '../../../src/engines/core/exports.ts'
import { compileCore, compileTexts } from './embedded-modules.ts'

/** Modules that a host has compiled itself: each is a `WebAssembly.Module`, which not every host declares. */
export interface Modules {
  /** `@sluice/core/core.wasm` */
  readonly core?: object
  /** `@sluice/core/core-texts.wasm`, which guards need. */
  readonly texts?: object
}

let core: WebAssembly.Module | undefined
let texts: WebAssembly.Module | undefined

/**
 * Provides modules that the host has compiled, before anything else of this package is used. Only needed in
 * hosts that forbid compiling, and that do not support the export condition `workerd`.
 */
export function init(modules: Modules): void {
  core = (modules.core as WebAssembly.Module | undefined) ?? core
  texts = (modules.texts as WebAssembly.Module | undefined) ?? texts
}

/** @internal */
export function loadCore(): WebAssembly.Module {
  core ??= compileCore()
  return core
}

/** @internal */
export function loadTexts(): WebAssembly.Module {
  texts ??= compileTexts()
  return texts
}

/** Creates an instance with its own memory. @internal */
export function instantiateCore(module: WebAssembly.Module = loadCore()): CoreExports {
  const exports = new WebAssembly.Instance(module).exports as unknown as CoreExports
  const version = exports.abi_version()
  if (version !== ABI_VERSION) {
    throw new Error(`the module has ABI version ${version}, this package needs ${ABI_VERSION}`)
  }
  return exports
}
