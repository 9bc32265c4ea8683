import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { functions } from '../../src/engines/cel/functions/table.ts'
import {
  activationOf,
  CelError,
  compileCel,
  gatewayVariables,
  HeadersView,
  isCelError,
} from '../../src/engines/cel/index.ts'
import { show } from './conformance-cases.ts'

interface Case {
  readonly expression: string
  readonly gives?: string
  readonly error?: string
  readonly refused?: string
}

const folder = join(import.meta.dirname, 'cases')
const files = readdirSync(folder).map((file) => ({
  file,
  cases: parse(readFileSync(join(folder, file), 'utf8')) as Case[],
}))

const headers = new Map<string, string | string[]>([
  ['x-team', 'red'],
  ['x-many', ['a, b', 'c']],
  ['authorization', 'Bearer secret'],
  ['cookie', 'a=1; b="2"'],
])

const activation = activationOf({
  request: {
    method: 'POST',
    path: '/p',
    pathAndQuery: '/p?q=1&r=&q=2+3',
    uri: 'http://h/p?q=1',
    body: Buffer.from('{"model":"m-1"}'),
    headers: new HeadersView(
      { get: (name) => headers.get(name), names: () => [...headers.keys()] },
      new Set(['authorization']),
    ),
  },
  response: { code: 404n },
  source: { address: '10.1.2.3', port: 4711n },
  jwt: JSON.parse('{"sub": "u-1", "n": 5, "one": 1, "roles": ["a", "b"], "nothing": null}'),
  llm: { prompt: new CelError('limit', 'the body is over the limit') as never },
})

function outcomeOf(expression: string): Case {
  const outcome = compileCel(expression, { variables: gatewayVariables })
  if (!outcome.ok) {
    return { expression, refused: outcome.problems.map(({ message }) => message).join('; ') }
  }
  const result = outcome.value.evaluate(activation)
  return isCelError(result)
    ? { expression, error: result.kind }
    : { expression, gives: show(result) }
}

describe.each(files)('expressions of $file', ({ cases }) => {
  it.each(cases)('$expression', ({ expression, gives, error, refused }) => {
    const expected = { expression, gives, error, refused }
    const actual = outcomeOf(expression)
    expect(actual).toEqual(
      refused === undefined ? expected : { ...expected, refused: expect.stringContaining(refused) },
    )
  })
})

describe('the expression cases', () => {
  it('cover every function', () => {
    const text = files.flatMap(({ cases }) => cases.map(({ expression }) => expression)).join('\n')
    const uncalled = [...functions.keys()].filter((name) => !text.includes(`${name}(`))
    expect(uncalled).toEqual([])
  })
})

describe('docs/expressions.md', () => {
  // The first page refers to the second for the fields of `llm`.
  const page = ['expressions.md', 'ai.md']
    .map((name) => readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8'))
    .join('\n')

  it('names every function, every variable and its fields', () => {
    const fields = [...gatewayVariables.values()].flatMap((names) => [...(names?.keys() ?? [])])
    const names = [...functions.keys(), ...gatewayVariables.keys(), ...fields]
    const pattern = (name: string) => new RegExp(`\`${name.replaceAll('.', '\\.')}(\\(.*?\\))?\``)
    expect(names.filter((name) => !pattern(name).test(page))).toEqual([])
  })
})
