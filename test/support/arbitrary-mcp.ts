/** Random destinations of MCP backends for property tests, and the parts that other properties use as well. */
import { mcpLists } from '../../src/ground/model/mcp-lists.ts'
import fc from './fast-check.ts'

export const text = fc.string({ unit: 'grapheme', maxLength: 12 })
export const port = fc.integer({ min: 0, max: 65_535 })
export const list = <Item>(item: fc.Arbitrary<Item>) => fc.array(item, { maxLength: 3 })
/** A record whose members from `optional` are there or absent, never undefined. */
export const record = <All extends Record<string, unknown>, Key extends keyof All & string>(
  members: { [Name in keyof All]: fc.Arbitrary<All[Name]> },
  ...optional: Key[]
) =>
  fc.record(members, {
    requiredKeys: Object.keys(members).filter((name) => !optional.includes(name as Key)) as never[],
    noNullPrototype: true,
  })

export const secretRef = record({ namespace: text, name: text, key: text, digest: text })

const mcpTarget = record(
  {
    name: text,
    sections: list(text),
    protocol: fc.constantFrom('StreamableHTTP', 'SSE'),
    path: text,
    destination: fc.oneof(
      record({ type: fc.constant('static' as const), host: text, port }),
      record({ type: fc.constant('service' as const), namespace: text, name: text, port }),
    ),
    pinning: fc.constantFrom('Warn', 'Block'),
    openapi: text,
    stdio: text,
    secrets: fc.array(secretRef, { minLength: 1, maxLength: 3 }),
    tools: record({
      include: list(text),
      exclude: list(text),
      overrides: list(
        record(
          { name: text, as: text, title: text, description: text, annotations: text },
          'as',
          'title',
          'description',
          'annotations',
        ),
      ),
    }),
    endpoints: fc.array(record({ host: text, port }), { minLength: 1, maxLength: 3 }),
  },
  'pinning',
  'openapi',
  'stdio',
  'secrets',
  'tools',
  'endpoints',
)

const mcpNames = record({
  target: text,
  list: fc.constantFrom(...mcpLists),
  names: list(text),
})

const mcpServer = record(
  {
    name: text,
    path: text,
    expression: text,
    targets: list(text),
    include: list(text),
    exclude: list(text),
  },
  'path',
  'expression',
)

export const mcpPins = record({
  target: text,
  list: fc.constantFrom(...mcpLists),
  items: list(record({ name: text, digest: text })),
})

export const mcpDestination = record(
  {
    type: fc.constant('mcp' as const),
    targets: list(mcpTarget),
    isStateless: fc.boolean(),
    // An empty list is not sent.
    pins: fc.array(mcpPins, { minLength: 1, maxLength: 3 }),
    prefixMode: fc.constantFrom('Conditional', 'Never'),
    failureMode: fc.constant('FailClosed'),
    names: fc.array(mcpNames, { minLength: 1, maxLength: 3 }),
    toolSearch: record({ pinned: list(text), limit: port }),
    virtualServers: fc.array(mcpServer, { minLength: 1, maxLength: 3 }),
  },
  'pins',
  'prefixMode',
  'failureMode',
  'names',
  'toolSearch',
  'virtualServers',
)
