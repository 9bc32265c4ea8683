// Masks email addresses and phone numbers in a text:  node mask.mjs core.wasm core.abi.json
import { readFileSync } from 'node:fs'
import { Core, utf8 } from './core.mjs'
import { Mask } from './regex.mjs'

const [wasm, abi] = process.argv.slice(2)
const core = new Core(readFileSync(wasm), JSON.parse(readFileSync(abi, 'utf8')))
const mask = new Mask(core)
mask.addBuiltin(core.constants.DETECT_EMAIL, '<EMAIL_ADDRESS>')
mask.addBuiltin(core.constants.DETECT_PHONE, '<PHONE_NUMBER>')

const text = utf8('write to ann@example.com, or call +44 20 7946 0958')
// The text arrives in two pieces, cut within the address. The result does not depend on the cut.
console.log(new TextDecoder().decode(mask.apply(text, [14])))
