// core.wasm in a worker of a page, where a large module may be compiled in one go. `cases.json` has
// the parsed case files of each suite.
import { Core } from '/examples/embedding/node/core.mjs'
import { runSuites } from '/examples/embedding/node/suites.mjs'

const load = async (path) => {
  const response = await fetch(path)
  if (!response.ok) throw new Error(`${path}: ${response.status}`)
  return response
}

const [wasm, abi, files] = await Promise.all([
  load('/dist/core.wasm').then((response) => response.arrayBuffer()),
  load('/assembly/core.abi.json').then((response) => response.json()),
  load('/cases.json').then((response) => response.json()),
])
postMessage(runSuites(new Core(new Uint8Array(wasm), abi), files))
