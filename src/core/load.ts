import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { instantiateSync } from '@assemblyscript/loader'
import { ABI_VERSION } from './abi.ts'
import type { CoreExports } from './exports.ts'
import type { SharedRateExports } from './rate-exports.ts'

/** Beside the bundle in dist/, or where the sources in src/core see dist/. */
const folders = ['./', '../../dist/']

/** Each module is compiled once a thread. */
const compiled = new Map<string, WebAssembly.Module>()

function load(name: string): WebAssembly.Module {
  const known = compiled.get(name)
  if (known !== undefined) return known
  const paths = folders.map((folder) => fileURLToPath(new URL(folder + name, import.meta.url)))
  const path = paths.find((candidate) => existsSync(candidate))
  if (path === undefined) {
    throw new Error(`${name} is missing; looked at ${paths.join(' and ')}: run npm run build`)
  }
  const module = new WebAssembly.Module(readFileSync(path))
  compiled.set(name, module)
  return module
}

/** The compiled core.wasm. Throws when the file is not there: it is made by `npm run build`. */
export function loadCore(): WebAssembly.Module {
  return load('core.wasm')
}

/** The compiled core-rate-shared.wasm. Throws as loadCore does. */
export function loadSharedRate(): WebAssembly.Module {
  return load('core-rate-shared.wasm')
}

function checked<Exports extends { abi_version(): number }>(name: string, exports: Exports) {
  const version = exports.abi_version()
  if (version !== ABI_VERSION) {
    throw new Error(`${name} has ABI version ${version}, this host needs ${ABI_VERSION}`)
  }
  return exports
}

/**
 * A new instance of the core, with its own memory. The loader's helpers are left aside: they wrap
 * each export in a function with rest parameters, and strings would be copied twice.
 */
export function instantiateCore(module: WebAssembly.Module = loadCore()): CoreExports {
  const { exports } = instantiateSync(module).instance
  return checked('core.wasm', exports as unknown as CoreExports)
}

/** A new instance of the shared rate module over memory that other threads may use too. */
export function instantiateSharedRate(memory: WebAssembly.Memory): SharedRateExports {
  const { exports } = instantiateSync(loadSharedRate(), { env: { memory } }).instance
  return checked('core-rate-shared.wasm', exports as unknown as SharedRateExports)
}
