/**
 * Counts the work of conversions, and prints it as JSON: for each source, the executed blocks of our code for
 * inputs of the given sizes. Run without compilers, which would leave out blocks: node --no-opt --no-maglev
 * --no-sparkplug.
 */
import { Session } from 'node:inspector'
import { parseManifest } from '../../src/control/watch/manifest.ts'
import { Conversion, sources } from '../../src/tools/import/index.ts'
import { inputs } from './growth-inputs.ts'

const sizes = process.argv.slice(2).map(Number)
const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })

/** Returns how often blocks were executed since the last call. */
function executedBlocks(): number {
  let sum = 0
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error !== null) throw error
    const own = result.filter(({ url }) => url.includes('/src/'))
    const blocks = own.flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
    for (const { count } of blocks) sum += count
  })
  return sum
}

function workOf(name: string, text: string): { readonly work: number; readonly objects: number } {
  const parsed = parseManifest(text, 'source.yaml')
  const source = sources.find((one) => one.name === name)
  if (!parsed.ok || source === undefined) throw new Error(`${name}: ${JSON.stringify(parsed)}`)
  const documents = parsed.value.map(({ value, placeOf }) => ({ file: name, value, placeOf }))
  const result = new Conversion({ port: 8080 })
  executedBlocks()
  source.convert(documents, result)
  const objects = result.finish().length
  return { work: executedBlocks(), objects }
}

const measured = Object.entries(inputs).map(([name, input]) => {
  // Functions that have never run are not compiled, and have no blocks yet.
  workOf(name, input(2))
  return [name, sizes.map((size) => workOf(name, input(size)))]
})
process.stdout.write(JSON.stringify(Object.fromEntries(measured)))
