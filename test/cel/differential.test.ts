import {
  isCelList,
  isCelMap,
  isCelType,
  isCelUint,
  isCelError as isPeerError,
  run,
} from '@bufbuild/cel'
import { isReflectMessage } from '@bufbuild/protobuf/reflect'
import { describe, expect, it } from 'vitest'
import { activationOf, compileCel, isCelError } from '../../src/engines/cel/index.ts'
import fc from '../support/fast-check.ts'
import { show } from './conformance-cases.ts'

/** What the peer gives, in the words of `show`; 'error' for errors of any kind. */
function showPeer(value: unknown): string {
  if (isPeerError(value)) return 'error'
  if (isCelUint(value)) return `uint ${value.value}`
  if (isCelType(value)) return `type ${value.name}`
  if (isCelList(value)) return `[${[...value].map(showPeer).join(', ')}]`
  if (isCelMap(value)) {
    const entries = [...value].map(([key, item]) => `${showKey(key)}: ${showPeer(item)}`)
    return `{${entries.sort().join(', ')}}`
  }
  if (isReflectMessage(value)) return showTime(value.message as never)
  return show(value as never)
}

/** Unsigned keys are ints with us. */
const showKey = (key: unknown) => showPeer(isCelUint(key) ? key.value : key)

/** Durations and timestamps are shown by their own `string`; here by their seconds. */
function showTime({ seconds, nanos }: { seconds: bigint; nanos: number }): string {
  return `time ${seconds * 1_000_000_000n + BigInt(nanos)}`
}

function showOurs(source: string): string {
  const outcome = compileCel(source)
  if (!outcome.ok) return 'error'
  const value = outcome.value.evaluate(activationOf({ x: 'free' }))
  if (isCelError(value)) return 'error'
  return show(value)
}

interface Parts {
  readonly expression: string
}

/** Expressions of the common language over the given literals. */
function expressions(literals: readonly string[], operators: readonly string[]) {
  const { expression } = fc.letrec<Parts>((tie) => {
    const e = tie('expression')
    const operator = fc.constantFrom(...operators)
    const conversion = fc.constantFrom(
      'size',
      'int',
      'uint',
      'string',
      'bytes',
      'bool',
      'type',
      'dyn',
    )
    const method = fc.constantFrom('contains', 'startsWith', 'endsWith', 'matches')
    // The peer takes bools for indices and doubles for keys.
    const index = fc.constantFrom('0', '1', '1u', '-1', '"a"', 'x')
    const key = fc.constantFrom('0', '2', '1u', 'true', '"a"', 'null', '[1]')
    const macro = fc.constantFrom('all', 'exists', 'exists_one', 'map', 'filter')
    return {
      expression: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        fc.constantFrom(...literals),
        fc.tuple(e, operator, e).map(([a, o, b]) => `(${a} ${o} ${b})`),
        fc.tuple(conversion, e).map(([f, a]) => `${f}(${a})`),
        fc.tuple(e, method, e).map(([of, m, a]) => `${of}.${m}(${a})`),
        fc.tuple(e, macro, e).map(([of, m, body]) => `${of}.${m}(x, ${body})`),
        fc.tuple(e, e, e).map(([c, a, b]) => `(${c} ? ${a} : ${b})`),
        fc.tuple(e, index).map(([a, b]) => `${a}[${b}]`),
        fc.tuple(e, e).map(([a, b]) => `[${a}, ${b}]`),
        fc.tuple(key, e).map(([a, b]) => `{${a}: ${b}}`),
        e.map((a) => `!(${a})`),
        e.map((a) => `-(${a})`),
      ),
    }
  })
  // The peer's parser takes `!!` and `--` away without looking at what they are applied to.
  return expression.filter((source) => !/!\(!|-\(-/.test(source))
}

const plain = [
  ...['0', '1', '2', '-3', '9223372036854775807', '0u', '1u', '18446744073709551615u'],
  // No empty text: the peer's int("") is 0.
  ...['"a"', '"ab"', '"é😀"', 'b"ab"', '"a b"', '"1"', '"true"', 'true', 'false', 'null'],
  ...['[]', '[1, 2]', '["a", 1]', '{}', '{"a": 1}', '{1: "a", true: 2}', 'x', 'int', 'string'],
]
const operators = ['+', '-', '*', '/', '%', '==', '!=', '<', '<=', '>', '>=', 'in', '&&', '||']
const comparisons = ['==', '!=', '<', '<=', '>', '>=', 'in']

/** The result of the peer; undefined if the peer cannot handle the expression. */
function peerResult(source: string): string | undefined {
  try {
    return showPeer(run(source, { x: 'free' }))
  } catch {
    return undefined
  }
}

describe('random expressions, compared with another CEL implementation', () => {
  it('have the same values and errors for all types except doubles', () => {
    let values = 0
    const property = fc.property(expressions(plain, operators), (source) => {
      const theirs = peerResult(source)
      if (theirs === undefined) return
      if (theirs !== 'error') values++
      expect(`${source} -> ${showOurs(source)}`).toBe(`${source} -> ${theirs}`)
    })
    fc.assert(property, { numRuns: 5000 })
    expect(values).toBeGreaterThan(300)
  })

  it('have the same results if doubles are compared with values of any type', () => {
    const numbers = [
      '1.0',
      '1.5',
      '-0.0',
      '2.0',
      '1e300',
      '0.0 / 0.0',
      '1',
      '2',
      '1u',
      '"a"',
      '[1.0]',
    ]
    const property = fc.property(expressions(numbers, comparisons), (source) => {
      const theirs = peerResult(source)
      if (theirs === undefined || theirs === 'error') return
      expect(`${source} -> ${showOurs(source)}`).toBe(`${source} -> ${theirs}`)
    })
    fc.assert(property, { numRuns: 3000 })
  })
})
