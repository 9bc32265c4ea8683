/** What Claude Code sends to vendors that are not its own, and what it needs in responses. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { converses } from '../support/vendors/vendor-f.ts'
import { eventually } from '../support/wait-for.ts'

const key = { auth: { key: 'gateway-key' } }
const aliases = (model: string) => ({ ai: { modelAliases: { asked: model } }, ...key })
const masks = (model: string) => ({
  ai: {
    modelAliases: { asked: model },
    promptGuard: { response: [{ regex: { builtins: ['Ssn'] } }] },
  },
  ...key,
})
const claudeOnF = 'anthropic.claude-sonnet-4-5-v1:0'

const fleet = useFleet(({ at, region }) => {
  const a = { vendorA: {}, ...at('a') }
  const c = { vendorC: {}, ...at('c') }
  return [
    reached('a', a, aliases('sent-a')),
    reached('c', c, aliases('sent-c')),
    reached(
      'd',
      { vendorD: {}, ...at('d') },
      { ...aliases('gemini-2.5-pro'), auth: { key: 'AIzaKey' } },
    ),
    reached('f', { vendorF: { region }, ...at('f') }, aliases(claudeOnF)),
    reached('masked-a', a, masks('sent-a')),
    reached('masked-c', c, masks('sent-c')),
  ]
})
beforeEach(() => fleet.forget())

const anthropic = (name: string, defaultHeaders = {}) =>
  new Anthropic({ baseURL: fleet.base(name), apiKey: 'client-key', maxRetries: 0, defaultHeaders })
const openai = (name: string, defaultHeaders = {}) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'k', maxRetries: 0, defaultHeaders })
const user = { role: 'user' as const, content: 'Hello' }
const ask = { model: 'asked', max_tokens: 100, messages: [user] }

describe('the model of a response', () => {
  it.each(['a', 'c', 'd', 'f', 'masked-a', 'masked-c'])(
    'is the one that the client asked for at %s, whole and streamed',
    async (name) => {
      expect((await anthropic(name).messages.create(ask)).model).toBe('asked')
      expect((await anthropic(name).messages.stream(ask).finalMessage()).model).toBe('asked')
      const chat = openai(name).chat.completions
      expect((await chat.create({ model: 'asked', messages: [user] })).model).toBe('asked')
      const stream = await chat.create({ model: 'asked', messages: [user], stream: true })
      let text = ''
      for await (const { model, choices } of stream) {
        expect(model).toBe('asked')
        text += choices[0]?.delta.content ?? ''
      }
      expect(text).toMatch(/^Hello from/)
      const { responses } = openai(name)
      expect((await responses.create({ model: 'asked', input: 'x' })).model).toBe('asked')
      const events = await responses.create({ model: 'asked', input: 'x', stream: true })
      for await (const event of events) {
        if ('response' in event) expect(event.response.model).toBe('asked')
      }
    },
  )

  it('is the one that the vendor names in the access log', async () => {
    await anthropic('c').messages.create(ask)
    await eventually(() =>
      expect(fleet.running.stdout).toMatch(
        /gen_ai\.request\.model=sent-c .*gen_ai\.response\.model=sent-c/,
      ),
    )
    expect(fleet.lastCall('c')?.body.model).toBe('sent-c')
  })

  it('is the one that the vendor names if the gateway has sent the name of the client', async () => {
    fleet.vendors.c.answer = (_, response) => {
      response.setHeader('content-type', 'application/json')
      const usage = { input_tokens: 1, output_tokens: 1 }
      const message = { id: 'm', type: 'message', role: 'assistant', content: [], usage }
      response.end(JSON.stringify({ ...message, model: 'dated-20260101', stop_reason: 'end_turn' }))
    }
    expect((await anthropic('c').messages.create({ ...ask, model: 'dated' })).model).toBe(
      'dated-20260101',
    )
    expect((await anthropic('c').messages.create(ask)).model).toBe('asked')
  })
})

describe('the id of the user', () => {
  const device = 'd'.repeat(64)
  const idOf = (session: string) =>
    JSON.stringify({ device_id: device, account_uuid: '', session_id: session })
  const sentFor = async (user_id: string) => {
    await anthropic('a').messages.create({ ...ask, metadata: { user_id } })
    return fleet.lastCall('a')?.body.user
  }

  it('does not leave as ids of the device and the session to another vendor', async () => {
    const user = await sentFor(idOf('one'))
    expect(user).toMatch(/^[0-9a-f]{64}$/)
    expect(await sentFor(idOf('two'))).toBe(user)
    expect(user).not.toBe(device)
    await anthropic('c').messages.create({ ...ask, metadata: { user_id: idOf('one') } })
    expect(fleet.lastCall('c')?.body.metadata).toEqual({ user_id: idOf('one') })
  })

  it('is sent as it is if it is a short name, and shortened otherwise', async () => {
    expect(await sentFor('ann')).toBe('ann')
    expect(await sentFor('x'.repeat(65))).toMatch(/^[0-9a-f]{64}$/)
  })
})

describe('headers for the vendor of the client', () => {
  const own = {
    'anthropic-beta': 'context-1m-2025-08-07,other-2026-01-01',
    'x-app': 'cli',
    'x-claude-code-session-id': 's',
    'x-trace': 'kept',
  }
  const codex = {
    originator: 'codex_exec',
    'session-id': 's',
    'thread-id': 't',
    'x-codex-turn-metadata': '{}',
    'openai-beta': 'responses=experimental',
    'x-trace': 'kept',
  }
  const foreign =
    /^(anthropic-|openai-|x-stainless-|x-claude-|x-codex-|x-app|originator|session-id|thread-id)/
  const sentTo = (vendor: 'a' | 'c' | 'd' | 'f') =>
    Object.keys(fleet.lastCall(vendor)?.headers ?? {}).filter((name) => foreign.test(name))

  it('do not go to other vendors', async () => {
    for (const vendor of ['a', 'd', 'f'] as const) {
      await anthropic(vendor, own).messages.create(ask)
      expect([vendor, sentTo(vendor)]).toEqual([vendor, []])
      expect(fleet.lastCall(vendor)?.headers['x-trace']).toBe('kept')
    }
    // Betas that vendorF has are a part of its requests.
    expect(fleet.lastCall('f')?.text).toContain('context-1m-2025-08-07')
    for (const vendor of ['c', 'd', 'f'] as const) {
      await openai(vendor, codex).responses.create({ model: 'asked', input: 'x' })
      const left = sentTo(vendor).filter((name) => name !== 'anthropic-version')
      expect([vendor, left]).toEqual([vendor, []])
      expect(fleet.lastCall(vendor)?.headers['x-trace']).toBe('kept')
    }
  })

  it('go to their own vendor', async () => {
    await anthropic('c', own).messages.create(ask)
    expect(fleet.lastCall('c')?.headers).toMatchObject(own)
    await openai('a', codex).responses.create({ model: 'asked', input: 'x' })
    expect(fleet.lastCall('a')?.headers).toMatchObject(codex)
  })
})

describe('a request that only searches', () => {
  const search = { type: 'web_search_20250305' as const, name: 'web_search' as const, max_uses: 8 }
  const request = {
    ...ask,
    tools: [search],
    tool_choice: { type: 'tool' as const, name: 'web_search' },
  }

  it('asks a vendor with an option for searches without a choice', async () => {
    await anthropic('a').messages.create(request)
    const { body } = fleet.lastCall('a') ?? {}
    expect(body).toMatchObject({ web_search_options: {} })
    expect(body).not.toHaveProperty('tool_choice')
    await anthropic('d').messages.create(request)
    expect(fleet.lastCall('d')?.text).toContain('googleSearch')
    expect(fleet.lastCall('d')?.body.toolConfig).toBeUndefined()
  })

  it('is refused where there is no search', async () => {
    await expect(anthropic('f').messages.create(request)).rejects.toThrow(
      /tools\[0\]: web searches are not supported by this provider/,
    )
  })

  it('chooses a tool of the client that has the name of the search', async () => {
    const own = { name: 'web_search', input_schema: { type: 'object' as const } }
    await anthropic('a').messages.create({ ...request, tools: [own] })
    expect(fleet.lastCall('a')?.body.tool_choice).toEqual({
      type: 'function',
      function: { name: 'web_search' },
    })
  })
})

describe('a document that a tool has read', () => {
  const pdf = {
    type: 'document' as const,
    source: {
      type: 'base64' as const,
      media_type: 'application/pdf' as const,
      data: 'JVBERi0xLjQ=',
    },
  }
  const call = { id: 'toolu_1', name: 'Read', input: { file_path: 'a.pdf' } }
  const tools = [{ name: 'Read', input_schema: { type: 'object' as const } }]
  const result = { type: 'tool_result' as const, tool_use_id: 'toolu_1', content: 'PDF file read' }
  const history = (content: Anthropic.ContentBlockParam[]) => ({
    ...ask,
    tools,
    messages: [
      user,
      { role: 'assistant' as const, content: [{ type: 'tool_use' as const, ...call }] },
      { role: 'user' as const, content },
    ],
  })

  it('is a part of the result at vendorF, which must come first', async () => {
    const cached = { ...pdf, cache_control: { type: 'ephemeral' as const } }
    for (const content of [
      [result, cached],
      [cached, result],
      [result, pdf, { type: 'text' as const, text: 'x' }],
    ]) {
      const answer = await anthropic('f').messages.create(history(content))
      expect(answer.content).toMatchObject([{ text: 'Hello from F' }])
      const { messages = [] } = (fleet.lastCall('f')?.body ?? {}) as {
        messages?: { content: object[] }[]
      }
      expect(messages.at(-1)?.content[0]).toMatchObject({
        toolResult: { content: [{ text: 'PDF file read' }, { document: { format: 'pdf' } }] },
      })
    }
  })

  it('stays beside a text at vendorF if there is no result', async () => {
    fleet.vendors.f.next.push(converses({ texts: ['read'] }))
    const content = [{ ...pdf, title: 'a.pdf' }]
    const answer = await anthropic('f').messages.create({
      ...ask,
      messages: [{ role: 'user', content }],
    })
    expect(answer.content).toMatchObject([{ text: 'read' }])
  })

  it('keeps results of several calls first, in one message', async () => {
    const two = { ...call, id: 'toolu_2' }
    const messages = [
      user,
      {
        role: 'assistant' as const,
        content: [call, two].map((one) => ({ type: 'tool_use' as const, ...one })),
      },
      {
        role: 'user' as const,
        content: [
          result,
          { type: 'text' as const, text: 'between' },
          { ...result, tool_use_id: 'toolu_2' },
          pdf,
        ],
      },
    ]
    await anthropic('f').messages.create({ ...ask, tools, messages })
    const sent = fleet.lastCall('f')?.body as undefined | { messages: { content: object[] }[] }
    expect(sent?.messages.at(-1)?.content.map((block) => Object.keys(block)[0])).toEqual([
      'toolResult',
      'toolResult',
      'text',
    ])
  })
})
