/** The modules as text, which works in every host that may compile. The others have `workerd-modules.ts`. */
import core from 'embedded:core.wasm'
import texts from 'embedded:core-texts.wasm'
import { fromBase64 } from './base64.ts'

export const compileCore = (): WebAssembly.Module => new WebAssembly.Module(fromBase64(core))
export const compileTexts = (): WebAssembly.Module => new WebAssembly.Module(fromBase64(texts))
