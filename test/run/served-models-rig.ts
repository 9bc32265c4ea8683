/** AgentgatewayModels of a Gateway and of HTTPRoutes, in front of simulators of vendors A, C and D. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort, type RunningGateway } from '../support/gateway.ts'
import { gateway, type Manifest } from '../support/manifests.ts'
import type { Vendor } from '../support/vendors/vendor.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'
import { says, startVendorC } from '../support/vendors/vendor-c.ts'

export interface ServedModels {
  readonly a: Vendor
  readonly b: Vendor
  readonly c: Vendor
  readonly running: RunningGateway
  readonly base: string
  openai(path?: string, headers?: Record<string, string>): OpenAI
  anthropic(): Anthropic
  /** Returns the text of a chat with a model. */
  textOf(model: string, path?: string, headers?: Record<string, string>): Promise<string | null>
  /** Returns the models that the vendor has got, in order. */
  sentTo(vendor: Vendor): readonly unknown[]
}

export const urlOf = (vendor: Vendor, path = '') => `http://127.0.0.1:${vendor.port}${path}`
export const hello = [{ role: 'user' as const, content: 'Hello' }]

/** Two simulators of vendor A, and one of vendor C, behind the models that `manifests` returns. */
export async function useServedModels(
  manifests: (parts: { a: Vendor; b: Vendor; c: Vendor }) => readonly Manifest[],
): Promise<ServedModels> {
  const port = await freePort()
  const a = useFixture(startVendorA)
  const b = useFixture(startVendorA)
  const c = useFixture(startVendorC)
  const running = useGateway(() => ({ manifests: [gateway(port), ...manifests({ a, b, c })] }))
  beforeEach(() => {
    for (const vendor of [a, b, c]) {
      vendor.calls.length = 0
      vendor.next.length = 0
    }
    a.answer = completes('from A')
    b.answer = completes('from B')
    c.answer = says('from C')
  })
  const base = `http://127.0.0.1:${port}`
  const openai = (path = '', headers: Record<string, string> = {}) =>
    new OpenAI({
      baseURL: `${base}${path}/v1`,
      apiKey: 'k',
      maxRetries: 0,
      defaultHeaders: headers,
    })
  return {
    a,
    b,
    c,
    running,
    base,
    openai,
    anthropic: () => new Anthropic({ baseURL: base, apiKey: 'k', maxRetries: 0 }),
    async textOf(model, path, headers) {
      const answer = await openai(path, headers).chat.completions.create({ model, messages: hello })
      return answer.choices[0]?.message.content ?? null
    },
    sentTo: (vendor) => vendor.calls.map(({ body }) => body.model),
  }
}
