import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { conformanceCases, failureOf } from './conformance-cases.ts'

/** Files of the core language. */
const core = [
  'basic',
  'comparisons',
  'conversions',
  'fields',
  'fp_math',
  'integer_math',
  'lists',
  'logic',
  'macros',
  'namespace',
  'parse',
  'plumbing',
  'string',
  'timestamps',
  'type_deductions',
]

/** Extensions that are part of the language of the gateway. */
const extensions = ['bindings_ext', 'encoders_ext', 'math_ext', 'string_ext']

interface Difference {
  readonly reason: string
  readonly cases: readonly string[]
}

const differences = parse(
  readFileSync(join(import.meta.dirname, 'known-differences.yaml'), 'utf8'),
) as readonly Difference[]

const isListed = (name: string) =>
  differences.some(({ cases }) => cases.some((start) => name.startsWith(start)))

const isAboutMessages = (name: string) =>
  differences[0]?.cases.some((start) => name.startsWith(start)) === true

const results = conformanceCases
  .filter(({ file }) => [...core, ...extensions].includes(file))
  .map((test) => ({ ...test, failure: failureOf(test) }))
  .filter((test) => test.failure !== null)

describe('the conformance cases of the CEL specification', () => {
  it('pass, except those with a listed reason', () => {
    const unexpected = results
      .filter(({ name, failure }) => failure !== undefined && !isListed(name))
      .map(({ name, test, failure }) => `${name}: ${test.expr} ${failure}`)
    expect(unexpected).toEqual([])
  })

  it('include a failing case for each listed difference', () => {
    const failing = results.filter(({ failure }) => failure !== undefined)
    const idle = differences
      .flatMap(({ cases }) => cases)
      .filter((start) => !failing.some(({ name }) => name.startsWith(start)))
    expect(idle).toEqual([])
  })

  it('pass for at least 99 % of the core language without messages', () => {
    const wanted = results.filter(({ file, name }) => core.includes(file) && !isAboutMessages(name))
    const passed = wanted.filter(({ failure }) => failure === undefined)
    const share = passed.length / wanted.length
    console.info(`core: ${passed.length} of ${wanted.length} (${(100 * share).toFixed(1)} %)`)
    expect(share).toBeGreaterThanOrEqual(0.99)
  })
})
