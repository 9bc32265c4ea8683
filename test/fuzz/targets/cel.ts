import assert from 'node:assert/strict'
import { functions } from '../../../src/engines/cel/functions/table.ts'
import { activationOf, compileCel, isCelError, writeJson } from '../../../src/engines/cel/index.ts'
import { defineTarget } from '../support/target.ts'

const activation = activationOf({
  jwt: { sub: 'a.b-c', list: [1, 'a', null, 2n], map: { a: 1n, b: 'x' }, n: 5 },
  x: 'free',
})

export default defineTarget({
  about: 'CEL sources are refused at an offset, or evaluated without an internal error',
  samples: [
    'jwt.list.filter(x, type(x) == int).map(x, x * 2)',
    '"a.b".split(".")[0] == jwt.sub ? {"a": [1, 2u, -3.5]} : null',
    'timestamp("2024-01-01T00:00:00Z") + duration("1h") > timestamp(0)',
    'cidr("10.0.0.0/8").containsIP(ip("10.1.2.3")) && has(jwt.map.a)',
    "x.matches('^(fr|e)+$') || b'\\xff' in [b'']",
  ],
  words: [
    ...functions.keys(),
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
    '.',
    ',',
    '?',
    ':',
    '"',
    "'",
    '\\',
    '`',
  ],
  start: () => ({
    check(input) {
      const source = input.subarray(0, 4096).toString()
      const outcome = compileCel(source)
      if (!outcome.ok) {
        assert.ok((outcome.problems[0]?.offset ?? 0) <= source.length)
        return
      }
      const result = outcome.value.evaluate(activation)
      if (isCelError(result)) assert.notEqual(result.kind, 'internal')
      else writeJson(result)
    },
  }),
})
