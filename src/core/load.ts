import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { instantiateSync } from '@assemblyscript/loader'
import { ABI_VERSION } from './abi.ts'
import type { CoreExports } from './exports.ts'

/** Beside the bundle in dist/, or where the sources in src/core see dist/. */
const places = ['./core.wasm', '../../dist/core.wasm']

let compiled: WebAssembly.Module | undefined

/**
 * The compiled core.wasm, compiled once a thread. Throws when the file is not there: it is made by
 * `npm run build`.
 */
export function loadCore(): WebAssembly.Module {
  if (compiled === undefined) {
    const paths = places.map((place) => fileURLToPath(new URL(place, import.meta.url)))
    const path = paths.find((candidate) => existsSync(candidate))
    if (path === undefined) {
      throw new Error(`core.wasm is missing; looked at ${paths.join(' and ')}: run npm run build`)
    }
    compiled = new WebAssembly.Module(readFileSync(path))
  }
  return compiled
}

/**
 * A new instance of the core, with its own memory. The loader's helpers are left aside: they wrap
 * each export in a function with rest parameters, and strings would be copied twice.
 */
export function instantiateCore(module: WebAssembly.Module = loadCore()): CoreExports {
  const exports = instantiateSync(module).instance.exports as unknown as CoreExports
  const version = exports.abi_version()
  if (version !== ABI_VERSION) {
    throw new Error(`core.wasm has ABI version ${version}, this host needs ${ABI_VERSION}`)
  }
  return exports
}
