import { instantiateSync } from '@assemblyscript/loader'
import { ABI_VERSION } from './abi.ts'
import { readBuilt } from './built-files.ts'
import type { CoreExports, SharedRateExports } from './exports.ts'

/** Compiled modules by file name. Each module is compiled once per thread. */
const compiled = new Map<string, WebAssembly.Module>()

function load(name: string): WebAssembly.Module {
  const module = compiled.get(name) ?? new WebAssembly.Module(readBuilt(name))
  compiled.set(name, module)
  return module
}

/** Returns the compiled core.wasm. Throws if the file is missing: `npm run build` creates it. */
export function loadCore(): WebAssembly.Module {
  return load('core.wasm')
}

/** Returns the compiled core-rate-shared.wasm. Throws like loadCore. */
export function loadSharedRate(): WebAssembly.Module {
  return load('core-rate-shared.wasm')
}

/** Returns the compiled core-texts.wasm. Throws like loadCore. */
export function loadTexts(): WebAssembly.Module {
  return load('core-texts.wasm')
}

function checked<Exports extends { abi_version(): number }>(name: string, exports: Exports) {
  const version = exports.abi_version()
  if (version !== ABI_VERSION) {
    throw new Error(`${name} has ABI version ${version}, this host needs ${ABI_VERSION}`)
  }
  return exports
}

/**
 * Creates an instance of the core with its own memory. The loader's helpers are not used, because they
 * wrap each export in a function with rest parameters and would copy strings twice.
 */
export function instantiateCore(module: WebAssembly.Module = loadCore()): CoreExports {
  const { exports } = instantiateSync(module).instance
  return checked('core.wasm', exports as unknown as CoreExports)
}

/** Creates an instance of the shared rate module over memory that other threads may also use. */
export function instantiateSharedRate(memory: WebAssembly.Memory): SharedRateExports {
  const { exports } = instantiateSync(loadSharedRate(), { env: { memory } }).instance
  return checked('core-rate-shared.wasm', exports as unknown as SharedRateExports)
}
