/**
 * Requests of tools of OpenAPI documents, compared with another serialiser: url-template (RFC 6570), which the tables
 * of OpenAPI refer to, and a few lines for the styles that RFC 6570 does not have.
 */
import assert from 'node:assert/strict'
import { parseTemplate } from 'url-template'
import { compileDocument } from '../../../src/gateway/backends/mcp/openapi/operations.ts'
import { requestOf } from '../../../src/gateway/backends/mcp/openapi/request.ts'
import { ArgumentProblem } from '../../../src/gateway/backends/mcp/openapi/serialize.ts'
import fc from '../../support/fast-check.ts'
import { defineTarget } from '../support/target.ts'

type Value = string | number | boolean | readonly string[] | Readonly<Record<string, string>>
interface Parameter {
  readonly in: 'path' | 'query' | 'header'
  readonly style: string
  readonly explode: boolean
  readonly value: Value
}

const styles = {
  path: ['simple', 'label', 'matrix'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
} as const

const texts = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.constantFrom(
    '..',
    '.',
    'a/../b',
    '%2e%2e',
    'a b',
    'a&b=c#d?e',
    ';x',
    'a,b',
    '\u0000',
    '\r\n',
    "!'()*",
  ),
)
const values: fc.Arbitrary<Value> = fc.oneof(
  texts,
  fc.integer(),
  fc.boolean(),
  fc.array(texts, { minLength: 1, maxLength: 3 }),
  fc.dictionary(fc.string({ minLength: 1, maxLength: 4 }), texts, {
    minKeys: 1,
    maxKeys: 3,
    noNullPrototype: true,
  }),
)
const parameters: fc.Arbitrary<Parameter> = fc
  .constantFrom('path' as const, 'query' as const, 'header' as const)
  .chain((place) =>
    fc.record({
      in: fc.constant(place),
      style: fc.constantFrom<string>(...styles[place]),
      explode: fc.boolean(),
      value: values,
    }),
  )

export default defineTarget({
  about: 'requests of OpenAPI tools are what an independent serialiser writes, or are refused',
  generate: (random) =>
    JSON.stringify(
      fc.sample(fc.array(parameters, { minLength: 1, maxLength: 4 }), {
        numRuns: 1,
        seed: random.integer() | 0,
      })[0],
    ),
  start: () => ({
    check(input) {
      const all = readParameters(input)
      if (all !== undefined) compare(all)
    },
  }),
})

function readParameters(input: Buffer): readonly Parameter[] | undefined {
  try {
    const value = JSON.parse(input.toString()) as unknown
    return Array.isArray(value) ? (value as Parameter[]) : undefined
  } catch {
    return undefined
  }
}

function compare(all: readonly Parameter[]): void {
  const named = all.map((one, at) => ({ ...one, name: `p${at}` }))
  const inPath = named.filter((one) => one.in === 'path')
  const path = ['/a', ...inPath.map(({ name }) => `{${name}}`), 'z'].join('/')
  const described = named.map(({ value: _, ...one }) => ({ ...one, schema: {}, required: true }))
  const operation = { operationId: 'op', parameters: described }
  const document = { openapi: '3.1.0', info: {}, paths: { [path]: { get: operation } } }
  const plan = compileDocument({ document }, 't').tools.get('op')?.plan
  assert.ok(plan)
  const args: Record<string, Record<string, Value>> = {}
  for (const { in: place, name, value } of named) args[place] = { ...args[place], [name]: value }
  let request: ReturnType<typeof requestOf>
  try {
    request = requestOf(plan, args, () => 'b')
  } catch (error) {
    assert.ok(error instanceof ArgumentProblem)
    assert.ok(named.some(mayBeRefused), `refused without a reason: ${error.message}`)
    return
  }
  const query = named.filter((one) => one.in === 'query').map(queryOf)
  const segments = inPath.map((one) => expand(operators[one.style] ?? '', one))
  const wanted = ['/a', ...segments, 'z'].join('/')
  assert.equal(request.path, query.length === 0 ? wanted : `${wanted}?${query.join('&')}`)
  const headers = named.filter((one) => one.in === 'header')
  assert.deepEqual(
    request.headers,
    headers.map((one) => [one.name, headerOf(one)]),
  )
  // As servers read it: the same number of segments, and no dot segment.
  const { pathname } = new URL(request.path, 'http://api')
  assert.equal(pathname.split('/').length, path.split('/').length)
}

const operators: Readonly<Record<string, string>> = {
  simple: '',
  label: '.',
  matrix: ';',
  form: '?',
}

type Named = Parameter & { readonly name: string }

const expand = (operator: string, { name, explode, value }: Named): string =>
  parseTemplate(`{${operator}${name}${explode ? '*' : ''}}`).expand({ [name]: value as string })

const partsOf = (value: Value): string[] =>
  typeof value === 'object'
    ? Array.isArray(value)
      ? [...(value as string[])]
      : Object.entries(value).flat()
    : [String(value)]

/** Encodes as RFC 6570 does for a simple expansion. */
const encoded = (text: string): string => parseTemplate('{x}').expand({ x: text })

function queryOf(one: Named): string {
  const { name, style, explode, value } = one
  const isObject = typeof value === 'object' && !Array.isArray(value)
  if (style === 'deepObject' && isObject) {
    return Object.entries(value)
      .map(([key, text]) => `${name}%5B${encoded(key)}%5D=${encoded(text)}`)
      .join('&')
  }
  const between = { spaceDelimited: '%20', pipeDelimited: '%7C' }[style]
  if (between !== undefined && !explode && typeof value === 'object') {
    return `${name}=${partsOf(value).map(encoded).join(between)}`
  }
  return expand('?', one).slice(1)
}

function headerOf({ explode, value }: Named): string {
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return value.join(',')
  return Object.entries(value)
    .map((pair) => pair.join(explode ? '=' : ','))
    .join(',')
}

/** Reasons to refuse that the documentation names. */
function mayBeRefused(one: Named): boolean {
  const parts = partsOf(one.value)
  if (parts.some((text) => !text.isWellFormed())) return true
  if (one.in === 'header') return !/^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/.test(headerOf(one))
  if (one.in !== 'path') return false
  // Style label writes dots, which could be segments of their own beside these.
  if (one.style === 'label' && parts.some((text) => /[;/\\]/.test(text))) return true
  return parts.some((text) => text === '' || /[.%]|\p{Cc}/u.test(text))
}
