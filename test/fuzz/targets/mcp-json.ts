import assert from 'node:assert/strict'
import { JsonScanner } from '../../../src/engines/json/scanner.ts'
import { type JsonNode, jsonValue, rootOf } from '../../../src/gateway/backends/mcp/json/node.ts'
import { defineTarget } from '../support/target.ts'

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** The value, from the members of every node that has some. */
function fromMembers(text: string, node: JsonNode): unknown {
  const values = node.values?.map((one) => fromMembers(text, one))
  if (values === undefined) return jsonValue(text, node)
  return node.keys === undefined
    ? values
    : Object.fromEntries(node.keys.map((key, at) => [key, values[at]]))
}

/** Keys of the samples, and a key that texts often have twice. */
const notedKeys = ['a', 'id', 'result']
const scanner = new JsonScanner({ noted: notedKeys, names: 'unique', maxDepth: 64 })

/** The members with these keys and the other keys, as the scanner has noted them. */
function fromNotes(text: string): unknown {
  const found = notedKeys.map((key) => {
    const range = scanner.rangeOf(key)
    return range && { value: JSON.parse(text.slice(range.start, range.end)) }
  })
  return { found, others: scanner.otherNames().toSorted() }
}

function notesOf(value: unknown): unknown {
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value)
  const members = new Map(isRecord ? Object.entries(value) : [])
  const found = notedKeys.map((key) => (members.has(key) ? { value: members.get(key) } : undefined))
  const others = [...members.keys()].filter((key) => !notedKeys.includes(key))
  return { found, others: others.toSorted() }
}

const mayDiffer = /is there twice|too deep/

export default defineTarget({
  about:
    'the JSON scanner of MCP accepts what JSON.parse accepts, except double keys and deep nesting',
  samples: [
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_b","arguments":{"x":[1,2.5e3,-0]}}}',
    '[{"jsonrpc":"2.0","id":"a","result":{"\\u00e9\\n":[null,true,false,"\\\\"]}}]',
    ' {"a" : "\\ud83d\\ude00 é" , "b":{"c":{"d":[[[[]]]]}}}\r\n',
    `${'['.repeat(70)}${']'.repeat(70)}`,
  ],
  words: [
    '{',
    '}',
    '[',
    ']',
    ':',
    ',',
    '"',
    '\\',
    '\\u',
    '\\u0000',
    '"a":',
    'null',
    '1e9',
    '-',
    '.',
  ],
  start: () => ({
    check(input) {
      const text = input.toString()
      const expected = parsed(text)
      for (const utf8 of [undefined, Buffer.from(text)]) {
        if (scanner.scanText(text, utf8)) {
          const node = rootOf(text)
          assert.deepEqual({ value: jsonValue(text, node) }, expected)
          assert.deepEqual({ value: fromMembers(text, node) }, expected)
          assert.deepEqual(fromNotes(text), notesOf(expected?.value))
        } else if (!mayDiffer.test(scanner.problem)) {
          assert.equal(expected, undefined, scanner.problem)
        }
      }
    },
  }),
})
