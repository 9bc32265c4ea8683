// core.wasm in a worker of a page, where a large module may be compiled in one go. `cases.json` has
// the parsed case files of each suite. Vocabularies are fetched as any file of a site: the server says
// `content-encoding: br` (browsers take that over HTTPS and from localhost), and the browser takes it off.
import { Core } from '/examples/embedding/node/core.mjs'
import { runSuites } from '/examples/embedding/node/suites.mjs'

const load = async (path) => {
  const response = await fetch(path)
  if (!response.ok) throw new Error(`${path}: ${response.status}`)
  return response
}

const bytesOf = async (path) => new Uint8Array(await (await load(path)).arrayBuffer())
const [wasm, o200k, cl100k, abi, files] = await Promise.all([
  bytesOf('/dist/core.wasm'),
  bytesOf('/dist/o200k_base.tokens.br'),
  bytesOf('/dist/cl100k_base.tokens.br'),
  load('/assembly/core.abi.json').then((response) => response.json()),
  load('/cases.json').then((response) => response.json()),
])
const vocabularies = { o200k_base: o200k, cl100k_base: cl100k }
postMessage(runSuites(new Core(wasm, abi), files, (encoding) => vocabularies[encoding]))
