import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { formatReport, summarize } from '../../../src/tools/cli/import/report.ts'
import { writeYaml } from '../../../src/tools/cli/import/write-yaml.ts'
import { printable } from '../../../src/tools/cli/shared/printable.ts'
import { Conversion, SourceError, sources } from '../../../src/tools/import/index.ts'
import { parseSource } from '../../../src/tools/import/read.ts'
import { hostile } from '../support/hostile.ts'
import { defineTarget } from '../support/target.ts'

/** The configurations that the pages about migration show, by the name of their source. */
const shown = new Map(
  sources.map(({ name }): [string, unknown[]] => {
    const page = readFileSync(join(import.meta.dirname, `../../../docs/migrate/${name}.md`), 'utf8')
    const blocks = [...page.matchAll(/^```(?:yaml|json)\n(.*?)^```/gms)].map(
      ([, text = '']) => text,
    )
    return [name, blocks.flatMap((text) => parseAllDocuments(text).map((one) => one.toJS()))]
  }),
)
const parts = [...shown.values()].flat()

/** Objects of other tools that a reader may meet in the same folder, and that lack what every object has. */
const bare = ['ClientTrafficPolicy', 'SecurityPolicy', 'Ingress', 'AgentgatewayPolicy', 'Gateway']
const groups = ['gateway.envoyproxy.io/v1alpha1', 'networking.k8s.io/v1', 'v1', 'kgateway.dev/v1']

interface Input {
  readonly from: string
  readonly documents: readonly unknown[]
}

export default defineTarget({
  about:
    'no configuration of another gateway stops `sluice import`, or breaks a line of its report',
  generate(random) {
    const { name } = random.pick(sources)
    const own = shown.get(name) ?? []
    const documents = random.oneIn(6)
      ? [{ apiVersion: random.pick(groups), kind: random.pick(bare) }]
      : Array.from({ length: 1 + random.below(3) }, () => random.pick(own.length > 0 ? own : parts))
    return JSON.stringify({ from: name, documents: hostile(documents, random, parts) })
  },
  start: () => ({
    check(input) {
      const { from, documents } = readInput(input)
      const source = sources.find(({ name }) => name === from)
      if (source === undefined) return
      const result = new Conversion({ port: source.port })
      try {
        const read = documents.flatMap((document, at) =>
          parseSource(Buffer.from(JSON.stringify(document)), `file-${at}.yaml`),
        )
        source.convert(read, result)
      } catch (error) {
        if (error instanceof SourceError) return
        throw error
      }
      const manifests = result.finish()
      for (const manifest of manifests) writeYaml(manifest)
      for (const line of [...formatReport(result), summarize(from, manifests, result)]) {
        assert.equal(line, printable(line))
      }
    },
  }),
})

function readInput(input: Buffer): Input {
  try {
    const { from, documents } = JSON.parse(input.toString()) as Partial<Input>
    return { from: String(from), documents: Array.isArray(documents) ? documents : [] }
  } catch {
    return { from: '', documents: [] }
  }
}
