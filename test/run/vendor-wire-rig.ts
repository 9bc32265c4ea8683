import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach } from 'vitest'
import { useAuthority, useFixture } from '../support/fixture.ts'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { startVendorB } from '../support/vendors/vendor-b.ts'

const signed = { auth: { aws: { secretRef: { name: 'aws' } } } }
const endpoint = 'https://unused.example'
const project = { projectId: 'my-project', region: 'us-central1' }
const guardrail = { identifier: 'gr-1', version: 'DRAFT' }

const authority = useAuthority()
/** A vendorB provider whose address comes only from its endpoint. */
export const ownHost = useFixture(() => startVendorB(0, authority.issue(['localhost'])))
const trusted = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'ca' },
  data: { 'ca.crt': authority.certificate },
}
export const fleet = useFleet(({ at, region }) => {
  const named = { endpoint, deploymentName: 'prod' }
  return [
    [trusted],
    reached(
      'b-own',
      { vendorB: { endpoint: `https://localhost:${ownHost.port}` } },
      { tls: { caCertificateRefs: [{ name: 'ca' }] } },
    ),
    reached('b', { vendorB: { endpoint }, ...at('b') }),
    reached('b-named', { vendorB: named, ...at('b') }),
    reached('b-preview', { vendorB: { ...named, apiVersion: 'preview' }, ...at('b') }),
    reached('b-dated', { vendorB: { ...named, apiVersion: '2024-10-21' }, ...at('b') }),
    reached(
      'b-token',
      { vendorB: { endpoint }, ...at('b') },
      { auth: { key: 'Bearer eyJh.eyJz.c2ln' } },
    ),
    reached('b-path', { vendorB: { endpoint }, ...at('b'), path: '/openai/v1/chat/completions' }),
    reached('c-pinned', { vendorC: { model: 'claude-pinned' }, ...at('c') }),
    reached('d', { vendorD: {}, ...at('d') }, { auth: { key: 'AIzaKey' } }),
    reached('d-pinned', { vendorD: { model: 'gemini-pinned' }, ...at('d') }),
    reached('e', { vendorE: project, ...at('e') }),
    reached('e-pinned', {
      vendorE: { ...project, region: 'global', model: 'claude-opus-4-20250514' },
      ...at('e'),
    }),
    reached('f', { vendorF: { region }, ...at('f') }, signed),
    reached(
      'f-pinned',
      { vendorF: { region, model: 'amazon.nova-pro-v1:0', guardrail }, ...at('f') },
      signed,
    ),
    reached('f-key', { vendorF: { region }, ...at('f') }),
    reached('f-default', { vendorF: {}, ...at('f') }, signed),
  ]
})
beforeEach(() => fleet.forget())

export const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
export const anthropic = (name: string) =>
  new Anthropic({ baseURL: fleet.base(name), apiKey: 'client-key', maxRetries: 0 })

export const messages = [{ role: 'user' as const, content: 'Hello' }]
export const chat = (name: string, model: string, more: object = {}) =>
  openai(name).chat.completions.create({ model, messages, ...more })
export const schema = (more: object) => [
  {
    type: 'function' as const,
    function: { name: 'find.it', parameters: { type: 'object', ...more } },
  },
]
