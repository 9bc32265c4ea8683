import assert from 'node:assert/strict'
import { isMap, isNode, isScalar, isSeq, parseAllDocuments } from 'yaml'
import { parseOptions } from '../../../src/control/watch/manifest.ts'
import { nodeProblem, startOf } from '../../../src/control/watch/manifest-nodes.ts'
import { type PlainOffsets, readPlainYaml } from '../../../src/control/watch/plain-yaml.ts'
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

/** Compares the offsets of all fields and items; those of items that the plain reader omits are not compared. */
function compareOffsets(value: unknown, node: unknown, offsets: PlainOffsets): void {
  const known = offsets.get(value)
  if (isMap(node)) {
    for (const { key, value: field } of node.items) {
      assert(isScalar(key))
      const name = String(key.value)
      assert.equal(known?.get(name), key.range?.[0])
      compareOffsets((value as Record<string, unknown>)[name], field, offsets)
    }
  } else if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) {
      assert(isNode(item))
      if (known?.has(index)) assert.equal(known.get(index), item.range?.[0])
      compareOffsets((value as readonly unknown[])[index], item, offsets)
    }
  }
}

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
      const offsets: PlainOffsets = new Map()
      const plain = readPlainYaml(text, offsets)
      if (plain === undefined) return
      assert.deepEqual(readPlainYaml(text), plain)
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
      const nodes = documents.map(({ contents }) => contents).filter((node) => isMap(node))
      for (const [index, { value }] of plain.entries()) compareOffsets(value, nodes[index], offsets)
    },
  }),
})
