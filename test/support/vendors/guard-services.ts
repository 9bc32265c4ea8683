/** Services that guards ask: a webhook, and the moderation endpoint of vendorA. */
import type { ServerResponse } from 'node:http'
import { json, startVendor, type Vendor, type VendorCall } from './vendor.ts'

interface Message {
  readonly role: string
  readonly content: string
}

/** What the webhook was shown. */
export function shown({ path, body }: VendorCall): Message[] {
  const inside = body.body as {
    messages?: Message[]
    choices?: { message: Message }[]
  }
  return path === '/request'
    ? (inside.messages ?? [])
    : (inside.choices ?? []).map(({ message }) => message)
}

/** Takes nothing but the documented calls. */
function checkWebhook(call: VendorCall): string | undefined {
  const { method, path, headers, body } = call
  if (method !== 'POST') return `method ${method}`
  if (path !== '/request' && path !== '/response') return `path ${path}`
  if (headers['content-type'] !== 'application/json') return 'content-type'
  const names = Object.keys((body.body ?? {}) as object)
  if (names.join() !== (path === '/request' ? 'messages' : 'choices')) return `fields ${names}`
  return shown(call).every(({ role, content }) => role !== '' && typeof content === 'string')
    ? undefined
    : 'texts'
}

export const acts =
  (action: unknown, status = 200) =>
  (_: VendorCall, response: ServerResponse): void =>
    json(response, status, { action })

/** Masks every text by a function. */
export const masks =
  (change: (text: string) => string) =>
  (call: VendorCall, response: ServerResponse): void => {
    const messages = shown(call).map(({ role, content }) => ({ role, content: change(content) }))
    const body =
      call.path === '/request'
        ? { messages }
        : { choices: messages.map((message) => ({ message })) }
    json(response, 200, { action: { body, reason: 'masked' } })
  }

export const startWebhook = (): Promise<Vendor> =>
  startVendor(checkWebhook, acts({ reason: 'fine' }), (message) => ({ message }))

function checkModeration({ method, path, headers, body }: VendorCall): string | undefined {
  if (method !== 'POST' || path !== '/v1/moderations') return `${method} ${path}`
  if (headers['content-type'] !== 'application/json') return 'content-type'
  if (headers.host !== 'api.openai.com') return `host ${headers.host}`
  if (typeof body.model !== 'string') return 'model'
  return Array.isArray(body.input) && body.input.length > 0 ? undefined : 'input'
}

/** Flags texts that a pattern finds. */
export const flags =
  (pattern: RegExp) =>
  ({ body }: VendorCall, response: ServerResponse): void => {
    const results = (body.input as string[]).map((text) => ({
      flagged: pattern.test(text),
      categories: {},
      category_scores: {},
    }))
    json(response, 200, { id: 'modr-sim', model: body.model, results })
  }

export const startModeration = (certificate: { certificate: string; key: string }) =>
  startVendor(
    checkModeration,
    flags(/violence/),
    (message) => ({ error: { message } }),
    0,
    certificate,
  )
