/** What the simulator decides about requests at their backends. */
import { describe, expect, it } from 'vitest'
import {
  aiBackend,
  mcpBackend,
  routeByHost,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { fields, recorded, simulate } from './simulator-rig.ts'

describe('requests with a known body', () => {
  const chatBody = (content: string) =>
    Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }))
  const guard = { request: [{ regex: { matches: ['forbidden'], action: 'Reject' } }] }
  const provider = { vendorA: {}, host: '127.0.0.1', port: 9 }
  const json = fields({ 'content-type': 'application/json' })

  it('run local guards of a model backend', async () => {
    const objects = [
      aiBackend('chat', { provider }, { ai: { promptGuard: guard } }),
      routeByHost('app', toBackend('chat')),
    ]
    const ask = async (content: string) => {
      const request = { method: 'POST', path: '/v1/chat/completions', headers: json }
      return (await simulate(objects, { ...request, body: chatBody(content) })).outcome
    }
    expect(await ask('hello')).toMatchObject({ verdict: 'forward', backend: 'default/chat' })
    expect(await ask('a forbidden word')).toMatchObject({ verdict: 'answer', status: 403 })
  })

  it('are undecided if a guard asks a webhook', async () => {
    const webhook = { request: [{ webhook: { backendRef: toBackend('guard') } }] }
    const objects = [
      staticBackend('guard', 9),
      aiBackend('chat', { provider }, { ai: { promptGuard: webhook } }),
      routeByHost('app', toBackend('chat')),
    ]
    const request = { method: 'POST', path: '/v1/chat/completions', headers: json }
    const { undecided } = await simulate(objects, { ...request, body: chatBody('hello') })
    expect(undecided).toEqual(['backend: it calls another service'])
  })

  it.each(['initialize', 'tools/list', 'tools/call'])(
    'are undecided if an MCP server must be asked: %s',
    async (method) => {
      const objects = [
        mcpBackend('tools', [{ name: 'items', static: { host: '127.0.0.1', port: 9 } }], {
          sessionRouting: 'Stateless',
        }),
        routeByHost('app', toBackend('tools')),
      ]
      const params =
        method === 'initialize'
          ? {
              protocolVersion: '2025-06-18',
              capabilities: {},
              clientInfo: { name: 'c', version: '1' },
            }
          : { name: 'search', arguments: {} }
      const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
      const accept = 'application/json, text/event-stream'
      const headers = [...json, ...fields({ accept })]
      const { undecided } = await simulate(objects, { method: 'POST', headers, body })
      expect(undecided).toEqual(['backend: it calls a server'])
    },
  )
})

describe('backends', () => {
  const several = [
    staticBackend('web', 9),
    staticBackend('new', 9),
    routeByHost('app', toBackend('web'), {
      backendRefs: [toBackend('web', { weight: 9 }), toBackend('new', { weight: 1 })],
    }),
  ]

  it('takes the recorded backend of several', async () => {
    const route = { backend: 'default/new', endpoint: '127.0.0.1:9' }
    const { outcome } = await simulate(several, recorded([], { route }))
    expect(outcome).toMatchObject({ verdict: 'forward', backend: 'default/new', status: 200 })
  })

  it('does not guess the backend of other requests, but takes an assumption', async () => {
    const { outcome, undecided } = await simulate(several)
    expect(outcome).toMatchObject({ verdict: 'forward', route: 'HTTPRoute default/app' })
    expect(outcome.backend).toBeUndefined()
    expect(undecided).toEqual(['backend: chosen at random among default/web, default/new'])
    const assumed = await simulate(several, {}, { assumedBackend: 'default/new' })
    expect(assumed.outcome.backend).toBe('default/new')
    expect(assumed.undecided).toEqual([])
  })

  it('answers 503 if a Service has no endpoints', async () => {
    const objects = [...service('empty', []), routeByHost('app', { name: 'empty', port: 80 })]
    expect((await simulate(objects)).outcome).toMatchObject({ verdict: 'answer', status: 503 })
  })

  it('takes the recorded outcome of a model backend', async () => {
    const objects = [
      aiBackend('chat', { provider: { vendorA: {}, host: '127.0.0.1', port: 9 } }),
      routeByHost('app', toBackend('chat')),
    ]
    const request = { method: 'POST', path: '/v1/chat/completions' }
    expect((await simulate(objects, request)).outcome.verdict).toBe('undecided')
    const route = { backend: 'default/chat', endpoint: '127.0.0.1:9' }
    const { outcome } = await simulate(objects, recorded([], { request, route }))
    expect(outcome).toMatchObject({ verdict: 'forward', status: 200, backend: 'default/chat' })
    const refused = { status: 403, reason: 'PromptGuard', detail: 'guard 0 matched' }
    const guarded = recorded([], { request, route: { backend: 'default/chat' }, response: refused })
    expect((await simulate(objects, guarded)).outcome).toMatchObject({
      verdict: 'answer',
      status: 403,
      reason: 'guard 0 matched',
    })
  })
})
