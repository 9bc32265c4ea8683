import assert from 'node:assert/strict'
import { parseAllDocuments } from 'yaml'
import { parseOptions } from '../../../src/watch/manifest.ts'
import { nodeProblem, startOf } from '../../../src/watch/manifest-nodes.ts'
import { readPlainYaml } from '../../../src/watch/plain-yaml.ts'
import { manifests } from '../support/control-plane.ts'
import { defineTarget } from '../support/target.ts'

const constructs = `# comment
a: 1
"b c": 'it''s'   # comment
list:
- x: [1, -2, 3.5, a b, "q\\n", {k: v, "l": []}]
  y:
    - - nested
      - # nothing
    -
  z: |
    text

      more
    end
- plain text: no
- "quoted": yes
- http://host:80/path#part
- null
- {
    a: b,  # comment
    "c":1, "d": [
      x,
    ],
  }
- |-
  last
---

---
d: {}
e:
  f: ~x
`

const json = `{
  "a": [{"b": "c\\n", "d": -1.5, "e": null}],
  "f": {}
}
---
{"g":true}
`

export default defineTarget({
  about: 'the reader of plain YAML agrees with the complete parser on all that it reads',
  samples: [constructs, json, ...manifests.filter(({ length }) => length < 3000)],
  words: [
    ...[
      '---\n',
      '---',
      '...',
      '- ',
      '-',
      ': ',
      ':',
      ' ',
      '  ',
      '\n',
      '\n\n',
      '{',
      '}',
      '[',
      ']',
      ',',
    ],
    ...[
      '"',
      "'",
      "''",
      '\\',
      '\\n',
      '|\n',
      '|-\n',
      '|+\n',
      '|2\n',
      '>\n',
      '\t',
      '\r',
      '\0',
      '#',
      ' #',
    ],
    ...['? ', '&a ', '*a', '<<: ', '!!str ', '!', '%YAML 1.2\n', '@', '`', '=', '<<', '__proto__'],
    ...[
      '1',
      '-0',
      '007',
      '1.',
      '.5',
      '1e3',
      '0x1f',
      '0o17',
      '+1',
      '-',
      '12345678901234567890',
      '1_0',
    ],
    ...[
      '.inf',
      '-.INF',
      '.nan',
      '~',
      'null',
      'Null',
      'true',
      'TRUE',
      'yes',
      'on',
      '2026-01-01',
      '""',
    ],
    ...[
      '\u{feff}',
      '\u2028',
      '\u0085',
      '\u00a0',
      '\u{10ffff}',
      'é',
      'a: b: c',
      'a:b',
      'a #b',
      'a#b',
    ],
  ],
  start: () => ({
    check(input) {
      const text = input.toString('utf8')
      const plain = readPlainYaml(text)
      if (plain === undefined) return
      const documents = [...parseAllDocuments(text, parseOptions)]
      for (const document of documents) {
        assert.deepEqual(document.errors, [])
        assert.equal(nodeProblem(document), undefined)
      }
      const complete = documents.flatMap((document) => {
        const value: unknown = document.toJS()
        return value === null ? [] : [{ value, start: startOf(document) }]
      })
      assert.deepEqual(plain, complete)
    },
  }),
})
