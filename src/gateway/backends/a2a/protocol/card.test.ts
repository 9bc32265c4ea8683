import { type AgentCard, generateAgentCardSignature } from '@a2a-js/sdk'
import { exportJWK } from 'jose'
import { describe, expect, it } from 'vitest'
import { keySetOf, signingKey } from '../../../../../test/support/identity-provider.ts'
import { readKeySet } from '../../../../engines/auth/jwt/key-set.ts'
import { rewriteCard } from './card.ts'
import { CardVerifier } from './signatures.ts'

const place = {
  origin: 'https://gw.example',
  clientPath: '/weather/.well-known/agent-card.json',
  agentPath: '/.well-known/agent-card.json',
  agent: 'agent.internal:8000',
}
const urlOf = (url: string, more: Partial<typeof place> = {}) =>
  rewriteCard({ url }, { ...place, ...more })?.card.url

describe('rewriteCard', () => {
  it.each([
    ['http://agent.internal:8000', 'https://gw.example/weather/'],
    ['http://agent.internal:8000/a2a/rpc?v=1', 'https://gw.example/weather/a2a/rpc?v=1'],
    // The first address is that of the agent, under the name that it knows.
    ['http://localhost:9999/a2a', 'https://gw.example/weather/a2a'],
    // BerriAI/litellm#20858: an address that no client could reach.
    ['http://[::]:8081/invoke', 'https://gw.example/weather/invoke'],
  ])('maps %s to %s', (from, to) => expect(urlOf(from)).toBe(to))

  it('maps what another prefix of the route replaces, and whole segments only (agentgateway#2981, #3500)', () => {
    const more = {
      clientPath: '/a2a/agents/supervisor/agent-card.json',
      agentPath: '/firefly/agents/supervisor/agent-card.json',
    }
    const at = 'https://gw.example/a2a/agents/supervisor/rpc'
    expect(urlOf('http://agent.internal:8000/firefly/agents/supervisor/rpc', more)).toBe(at)
    // The agent may know the address of the gateway already.
    expect(urlOf('https://gw.example/a2a/agents/supervisor/rpc', more)).toBe(at)
    expect(urlOf('http://agent.internal:8000/firefly-2/rpc', more)).toBeUndefined()
  })

  it('leaves out gRPC below a prefix, and prefers an interface that the route leads to', () => {
    const card = {
      url: 'grpc.internal:50051',
      preferredTransport: 'GRPC',
      additionalInterfaces: [
        { url: 'grpc.internal:50051', transport: 'GRPC' },
        { url: 'http://agent.internal:8000/rpc', transport: 'JSONRPC' },
      ],
    }
    const url = 'https://gw.example/weather/rpc'
    expect(rewriteCard(card, place)?.card).toEqual({
      url,
      preferredTransport: 'JSONRPC',
      additionalInterfaces: [{ url, transport: 'JSONRPC' }],
    })
    const atRoot = { ...place, clientPath: place.agentPath }
    const grpc = { supportedInterfaces: [{ url: 'a:50051', protocolBinding: 'GRPC' }] }
    expect(rewriteCard(grpc, atRoot)?.card.supportedInterfaces).toEqual([
      { url: 'gw.example', protocolBinding: 'GRPC' },
    ])
  })
})

describe('CardVerifier', () => {
  const capabilities = { streaming: false, extensions: [] }
  const card = { name: 'é', description: '', version: '1', capabilities, skills: [] }

  it('accepts what the SDK signs, and nothing that was changed', async () => {
    const key = await signingKey('k', 'ES256')
    const jwk = { ...(await exportJWK(key.privateKey)), alg: 'ES256' }
    const sign = generateAgentCardSignature(jwk, { alg: 'ES256', kid: 'k', typ: 'JOSE' })
    const signed = (await sign(card as unknown as AgentCard)) as unknown as Record<string, unknown>
    const set = readKeySet(keySetOf(key))
    const verifier = new CardVerifier(typeof set === 'string' ? [] : set.keys)
    expect(await verifier.check({ ...card, signatures: signed.signatures })).toBe('valid')
    const changed = { ...card, version: '2', signatures: signed.signatures }
    expect(await verifier.check(changed)).toBe('invalid')
    expect(await verifier.check(card)).toBe('unsigned')
    expect(await new CardVerifier([]).check({ ...card, signatures: signed.signatures })).toBe(
      'invalid',
    )
  })
})
