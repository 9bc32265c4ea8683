import assert from 'node:assert/strict'
import { type JsonNode, jsonValue, rawOf } from '../../../src/gateway/backends/mcp/json/node.ts'
import { Outline } from '../../../src/gateway/backends/mcp/json/outline.ts'
import { JsonRefusal, scanJson, scanObject } from '../../../src/gateway/backends/mcp/json/scan.ts'
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
const outlineKeys = ['a', 'id', 'result']

/** The members with these keys and the other keys, from an outline. */
function fromOutline(text: string): unknown {
  const outline = new Outline(outlineKeys)
  const { type } = scanObject(text, { maxDepth: 64, keptDepth: 4 }, outline)
  if (type !== 'object') return undefined
  const found = outlineKeys.map((key) => {
    const node = outline.node(key)
    if (node === undefined) return undefined
    assert.equal(rawOf(text, node), outline.rawOf(key))
    const value = fromMembers(text, node)
    if (typeof value === 'string') assert.equal(outline.textOf(key), value)
    return { value }
  })
  return { found, others: outline.others.toSorted() }
}

function outlined(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const members = new Map(Object.entries(value))
  const found = outlineKeys.map((key) =>
    members.has(key) ? { value: members.get(key) } : undefined,
  )
  const others = [...members.keys()].filter((key) => !outlineKeys.includes(key))
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
      try {
        const node = scanJson(text, { maxDepth: 64, keptDepth: 4 })
        assert.deepEqual({ value: jsonValue(text, node) }, expected)
        assert.deepEqual({ value: fromMembers(text, node) }, expected)
        assert.deepEqual(fromOutline(text), outlined(expected?.value))
      } catch (error) {
        if (!(error instanceof JsonRefusal)) throw error
        if (!mayDiffer.test(error.message)) assert.equal(expected, undefined, error.message)
      }
    },
  }),
})
