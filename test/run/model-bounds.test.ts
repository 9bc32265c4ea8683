/** The work and the size of a translation are bounded by the size of the request. */
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, routes, useFleet } from '../support/vendors/fleet.ts'

const project = { projectId: 'my-project', region: 'us-central1' }
const signed = { auth: { aws: { secretRef: { name: 'aws' } } } }
const fleet = useFleet(({ at, region }) => [
  reached('a', { vendorA: {}, ...at('a') }),
  reached('c', { vendorC: {}, ...at('c') }),
  reached('d', { vendorD: {}, ...at('d') }),
  reached('e', { vendorE: project, ...at('e') }),
  reached('f', { vendorF: { region }, ...at('f') }, signed),
  reached(
    'aliased',
    { vendorA: {}, ...at('a') },
    {
      ai: {
        routes,
        modelAliases: {
          '*claude*sonnet*': 'two-stars',
          'a*b*b*c': 'inner',
          '*x*y': 'open-start',
          'z**z': 'ends',
        },
      },
    },
  ),
])
beforeEach(() => fleet.forget())

const gemini = { d: 'gemini-2.5-flash', e: 'google/gemini-2.5-flash' } as const
const messages = [{ role: 'user', content: 'Hello' }]

const post = (name: string, path: string, body: string) =>
  fetch(`${fleet.base(name)}${path}`, { method: 'POST', body })

type Letter = keyof typeof gemini

/** Sends a tool and an output format with a schema, and returns what the vendor received. */
async function sent(to: Letter, schema: object): Promise<Record<'tool' | 'output', object>> {
  const body = {
    model: gemini[to],
    messages,
    tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
    response_format: { type: 'json_schema', json_schema: { name: 'o', schema } },
  }
  const answer = await post(to, '/v1/chat/completions', JSON.stringify(body))
  expect(answer.status, await answer.text()).toBe(200)
  const { tools, generationConfig } = (fleet.lastCall(to)?.body ?? {}) as {
    tools: [{ functionDeclarations: [{ name: string }] }]
    generationConfig: object
  }
  const { name: _, ...tool } = tools[0].functionDeclarations[0]
  const { responseMimeType: __, ...output } = generationConfig as { responseMimeType?: string }
  return { tool, output }
}

const ref = (name: string) => ({ $ref: `#/$defs/${name}` })
const properties = (of: Record<string, object>) => ({ type: 'object', properties: of })

describe.each(Object.keys(gemini) as Letter[])(
  'a tool schema for the models of vendor %s',
  (to) => {
    it('keeps a type that has itself inside', async () => {
      const node = properties({ l: ref('N'), r: ref('N'), all: { type: 'array', items: ref('N') } })
      const schema = { ...properties({ root: ref('N') }), $defs: { N: node } }
      const { tool, output } = await sent(to, schema)
      expect(tool).toEqual({ parametersJsonSchema: schema })
      expect(output).toEqual({ responseJsonSchema: schema })
    })

    it('is sent as JSON Schema if many types refer to each other', async () => {
      const names = Array.from({ length: 30 }, (_, n) => `T${n}`)
      const all = properties(Object.fromEntries(names.map((name) => [name, ref(name)])))
      const $defs = Object.fromEntries(names.map((name) => [name, all]))
      const schema = { ...properties({ root: ref('T0') }), $defs }
      const { tool, output } = await sent(to, schema)
      expect(tool).toEqual({ parametersJsonSchema: schema })
      expect(output).toEqual({ responseJsonSchema: schema })
    })

    it('is sent as JSON Schema if each type is used twice by the next one', async () => {
      const definitions = Object.fromEntries(
        Array.from({ length: 24 }, (_, n) => {
          const next = { $ref: `#/definitions/T${n + 1}`, description: 'beside a reference' }
          return [`T${n}`, n === 23 ? { type: 'string' } : properties({ a: next, b: next })]
        }),
      )
      const root = { $ref: '#/definitions/T0' }
      const { tool } = await sent(to, { ...properties({ root }), definitions })
      const next = { $ref: '#/$defs/T1' }
      expect(tool).toMatchObject({
        parametersJsonSchema: {
          properties: { root: { $ref: '#/$defs/T0' } },
          $defs: { T0: properties({ a: next, b: next }) },
        },
      })
    })

    it('does not repeat a long description for each reference', async () => {
      const fields = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`p${n}`, ref('T')]))
      const $defs = { T: { type: 'string', description: 'x'.repeat(20_000) } }
      const schema = { ...properties(fields), $defs }
      expect((await sent(to, schema)).tool).toEqual({ parametersJsonSchema: schema })
    })

    it('keeps what several references and parts of allOf say', async () => {
      const $defs = {
        A: ref('B'),
        B: { ...properties({ b: { type: 'string' } }), required: ['b'] },
        C: { allOf: [ref('A'), { ...properties({ c: { type: 'integer' } }), required: ['c'] }] },
      }
      const { tool } = await sent(to, { ...properties({ a: ref('A'), c: ref('C') }), $defs })
      const both = { b: { type: 'string' }, c: { type: 'integer' } }
      expect(tool).toEqual({
        parametersJsonSchema: {
          ...properties({ a: ref('A'), c: ref('C') }),
          $defs: { ...$defs, C: { ...properties(both), required: ['b', 'c'] } },
        },
      })
    })

    it('does not grow without bound if parts of allOf refer to many others', async () => {
      const $defs = Object.fromEntries(
        Array.from({ length: 200 }, (_, n) => {
          const next = ref(`T${n + 1}`)
          const own = properties({ [`p${n}`]: { type: 'string', description: 'x'.repeat(100) } })
          return [`T${n}`, n === 199 ? own : { allOf: [next, next, own] }]
        }),
      )
      const schema = { ...properties({ root: ref('T0') }), $defs }
      const { tool } = await sent(to, schema)
      expect(JSON.stringify(tool).length).toBeLessThan(8 * JSON.stringify(schema).length)
    })

    it('with very many parts of allOf is written in linear time', async () => {
      const allOf = Array.from({ length: 30_000 }, (_, n) => ({ properties: { [`p${n}`]: {} } }))
      const { tool } = await sent(to, { type: 'object', allOf })
      expect(JSON.stringify(tool).length).toBeGreaterThan(300_000)
    }, 10_000)
  },
)

const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
const deepList = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`
const models = {
  a: 'gpt-5',
  c: 'claude-opus-4-1',
  d: gemini.d,
  e: gemini.e,
  f: 'anthropic.claude-sonnet-4-v1:0',
}

describe.each(Object.entries(models))('a request to vendor %s', (to, model) => {
  const completions = (more: string) =>
    `{"model":"${model}","messages":[{"role":"user","content":"x"}],${more}}`
  const call = (input: string) =>
    `"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"${input}"}}]`
  const requests: Record<string, readonly [string, string]> = {
    'a schema': [
      '/v1/chat/completions',
      completions(
        `"tools":[{"type":"function","function":{"name":"f","parameters":${deep(100_000)}}}]`,
      ),
    ],
    'a field': ['/v1/chat/completions', completions(`"metadata":${deepList(200_000)}`)],
    'arguments of a call': [
      '/v1/chat/completions',
      `{"model":"${model}","messages":[{"role":"user","content":"x"},{"role":"assistant",${call(
        deep(100_000).replaceAll('"', '\\"'),
      )}},{"role":"tool","tool_call_id":"c","content":"x"}]}`,
    ],
    'a content of Messages': [
      '/v1/messages',
      `{"model":"${model}","max_tokens":9,"messages":[{"role":"user","content":${deepList(200_000)}}]}`,
    ],
    'an item of Responses': [
      '/v1/responses',
      `{"model":"${model}","input":[{"role":"user","content":${deepList(200_000)}}]}`,
    ],
  }
  it.each(Object.entries(requests))(
    'with %s that is nested very deep does not fail',
    async (_, [path, body]) => {
      const answer = await post(to, path, body)
      const text = await answer.text()
      // Vendors get fields that the gateway does not read, and schemas are cut off for some.
      if (answer.status !== 400) expect(answer.status, text).toBe(200)
      const next = await post(to, '/v1/chat/completions', JSON.stringify({ model, messages }))
      expect(next.status).toBe(200)
    },
  )
})

describe('a model alias with several stars', () => {
  const chat = (model: string) =>
    post('aliased', '/v1/chat/completions', JSON.stringify({ model, messages }))

  it.each([
    ['claude-3-sonnet', 'two-stars'],
    ['claudesonnet', 'two-stars'],
    ['eu.claude.x.sonnet.y', 'two-stars'],
    ['sonnet-claude', 'sonnet-claude'],
    ['a1b2b3c', 'inner'],
    ['abbc', 'inner'],
    ['abc', 'abc'],
    ['abbcd', 'abbcd'],
    ['1x2y', 'open-start'],
    ['y1x', 'y1x'],
    ['xy\nxy', 'open-start'],
    ['zz', 'ends'],
    ['z', 'z'],
  ])('maps %j to %s', async (model, expected) => {
    expect((await chat(model)).status).toBe(200)
    expect(fleet.lastCall('a')?.body.model).toBe(expected)
  })

  it('is not compared with very long names, which are refused', async () => {
    const from = fleet.running.stdout.length
    const long = 'claude'.repeat(50_000)
    const requests = [
      ['/v1/chat/completions', { messages }],
      ['/v1/messages', { messages, max_tokens: 9 }],
      ['/v1/responses', { input: 'x' }],
      ['/v1/embeddings', { input: 'x' }],
    ] as const
    for (const [path, body] of requests) {
      const answer = await post('aliased', path, JSON.stringify({ model: long, ...body }))
      expect(answer.status).toBe(400)
      expect(await answer.text()).toContain('the model name has more than 512 characters')
    }
    expect(fleet.vendors.a.calls).toHaveLength(0)
    expect((await chat('m'.repeat(512))).status).toBe(200)
    expect(fleet.running.stdout.slice(from)).not.toContain('claudeclaude')
  })
})
