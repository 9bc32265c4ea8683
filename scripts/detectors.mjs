// `npm run detectors -- [--seed N] [--count N] [--write FILE]`: precision and recall of each builtin detector on a corpus
// that is made from the seed, with N values of each. `--write` writes the corpus as JSON lines, for other tools.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { makeCorpus, scoreDetectors } from '../test/detectors/corpus.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '47' },
    count: { type: 'string', default: '200' },
    write: { type: 'string' },
  },
})
const corpus = makeCorpus(Number(values.seed), Number(values.count))
if (values.write !== undefined) {
  writeFileSync(values.write, corpus.map((document) => `${JSON.stringify(document)}\n`).join(''))
}
const share = (part, whole) => (whole === 0 ? '-' : (part / whole).toFixed(3))
console.log(`${corpus.length} texts, seed ${values.seed}`)
console.log(`${'detector'.padEnd(18)}${'precision'.padStart(10)}${'recall'.padStart(10)}`)
for (const { builtin, values: all, found, wrong } of scoreDetectors(corpus)) {
  console.log(
    `${builtin.padEnd(18)}${share(found, found + wrong).padStart(10)}${share(found, all).padStart(10)}`,
  )
}
