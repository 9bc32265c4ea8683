/** The modules as workerd compiles them when a worker is deployed. */
import core from './core.wasm'
import texts from './core-texts.wasm'

export const compileCore = (): WebAssembly.Module => core
export const compileTexts = (): WebAssembly.Module => texts
