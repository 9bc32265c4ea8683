import { describe, expect, it } from 'vitest'
import { functions } from '../../src/engines/cel/functions/table.ts'
import { activationOf, compileCel, isCelError, writeJson } from '../../src/engines/cel/index.ts'
import fc from '../support/fast-check.ts'

const atoms = [
  ...functions.keys(),
  ...[
    'request',
    'jwt',
    'x',
    'has',
    'all',
    'exists',
    'map',
    'filter',
    'default',
    'coalesce',
    'cel.bind',
  ],
  ...['1', '2u', '1.5', '"a"', 'b"\\xff"', 'null', 'true', '[]', '{}', "'é'", '0x1F', '-1', '""'],
  ...['(', ')', '[', ']', '{', '}', ',', ':', '?', '.', ' ', '+', '-', '*', '/', '%', '!'],
  ...['&&', '||', '==', '!=', '<', '<=', '>', '>=', 'in', '\n', '//', '"', "'", '\\', '`'],
]

/** Well-formed more often than not. */
const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const e = tie('expression')
  const operator = fc.constantFrom(
    ...['+', '-', '*', '/', '%', '==', '!=', '<', '<=', '>', '>=', 'in', '&&', '||'],
  )
  const name = fc.constantFrom(...functions.keys(), 'default', 'coalesce')
  const macro = fc.constantFrom('all', 'exists', 'exists_one', 'map', 'filter', 'mapValues', 'with')
  const literal = fc.constantFrom(
    ...['1', '-3', '0', '2u', '1.5', '"a"', '"10.0.0.0/8"', 'b"x"', 'null', 'true', '[]', 'x'],
    ...['jwt', 'jwt.sub', 'jwt.list', 'jwt.map', 'jwt["n"]', '9223372036854775807', '"UTC"'],
    ...['duration("1h")', 'timestamp(0)', 'ip("::1")', 'cidr("10.0.0.0/8")', '{"a": 1}', 'int'],
  )
  return {
    expression: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      literal,
      fc.tuple(e, operator, e).map(([a, o, b]) => `(${a} ${o} ${b})`),
      fc.tuple(name, fc.array(e, { maxLength: 3 })).map(([n, args]) => `${n}(${args.join(', ')})`),
      fc
        .tuple(e, name, fc.array(e, { maxLength: 2 }))
        .map(([of, n, args]) => `${of}.${n}(${args.join(', ')})`),
      fc.tuple(e, macro, e).map(([of, m, body]) => `${of}.${m}(x, ${body})`),
      fc.tuple(e, e, e).map(([c, a, b]) => `(${c} ? ${a} : ${b})`),
      fc.tuple(e, e).map(([a, b]) => `${a}[${b}]`),
      fc.tuple(e, e).map(([a, b]) => `[${a}, ${b}]`),
      fc.tuple(e, e).map(([a, b]) => `{${a}: ${b}}`),
      e.map((a) => `!${a}`),
    ),
  }
})

const activation = activationOf({
  jwt: { sub: 'a.b-c', list: [1, 'a', null, 2n], map: { a: 1n, b: 'x' }, n: 5 },
  x: 'free',
})

function survives(source: string): void {
  const outcome = compileCel(source)
  if (!outcome.ok) {
    expect(outcome.problems[0]?.offset).toBeLessThanOrEqual(source.length)
    return
  }
  const result = outcome.value.evaluate(activation)
  if (isCelError(result)) expect(result.kind).not.toBe('internal')
  else writeJson(result)
}

describe('compiling and evaluating random expressions never throws', () => {
  it('with random characters', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 60 }), survives), {
      numRuns: 3000,
    })
  })

  it('with random tokens', () => {
    const tokens = fc.array(fc.constantFrom(...atoms), { maxLength: 25 })
    fc.assert(
      fc.property(tokens, (parts) => survives(parts.join(''))),
      { numRuns: 5000 },
    )
  })

  it('with well-formed expressions of random types', () => {
    fc.assert(fc.property(expression, survives), { numRuns: 10_000 })
  })
})
