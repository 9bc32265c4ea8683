/** Requests of every client format to simulators of all vendors, which refuse what the vendors refuse. */
import { beforeEach, expect } from 'vitest'
import { reached, routes, useFleet } from '../support/vendors/fleet.ts'

export type Fields = Readonly<Record<string, unknown>>
export type Letter = 'a' | 'c' | 'd' | 'e' | 'f'

const paths = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
} as const
export type Format = keyof typeof paths

/** Vendor, format of the client, model, fields of the request, and what the vendor must get. */
export type Case = readonly [Letter, Format, model: string, fields: Fields, expected: Fields]

export const title = '%s gets from %s for %s what the model accepts: %j'

export const user = [{ role: 'user', content: 'Hello' }]

/** What every request of a format has. */
const least: Readonly<Record<Format, Fields>> = {
  chat: { messages: user },
  messages: { messages: user, max_tokens: 9_000 },
  responses: { input: 'Hello' },
}

export function useModels() {
  const conversed = { ai: { routes: { ...routes, '/converse': 'Converse' } } }
  const fleet = useFleet(({ at, region }) => [
    reached('a', { vendorA: {}, ...at('a') }),
    reached('custom', { custom: { formats: [{ type: 'Completions' }] }, ...at('a') }),
    reached('c', { vendorC: {}, ...at('c') }, conversed),
    reached('d', { vendorD: {}, ...at('d') }, { ...conversed, auth: { key: 'AIzaKey' } }),
    reached('e', { vendorE: { projectId: 'my-project', region: 'us-central1' }, ...at('e') }),
    reached('f', { vendorF: { region }, ...at('f') }),
  ])
  beforeEach(() => fleet.forget())

  const ask = (vendor: Letter, format: Format, model: string, fields: Fields): Promise<Response> =>
    fetch(`${fleet.base(vendor)}${paths[format]}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer k' },
      body: JSON.stringify({ model, ...least[format], ...fields }),
    })

  return {
    fleet,
    ask,
    /** Sends a request; returns the body that the vendor got. */
    async sent(vendor: Letter, format: Format, model: string, fields: Fields): Promise<Fields> {
      const response = await ask(vendor, format, model, fields)
      const text = await response.text()
      expect(response.status, text).toBe(200)
      return fleet.lastCall(vendor)?.body ?? {}
    },
    /** Expects 400 with this message before anything was sent. */
    async refused(vendor: Letter, format: Format, model: string, fields: Fields, message: string) {
      const response = await ask(vendor, format, model, fields)
      expect(await response.text()).toContain(message)
      expect(response.status).toBe(400)
      expect(fleet.vendors[vendor].calls).toEqual([])
    },
    /** Sends a request and returns the answer, whole or as the data of its events. */
    async answer(vendor: Letter, format: Format, model: string, fields: Fields) {
      const response = await ask(vendor, format, model, fields)
      const text = await response.text()
      const events = text
        .split('\n')
        .flatMap((line) =>
          line.startsWith('data: {') ? [JSON.parse(line.slice(6)) as Fields] : [],
        )
      const body = (events.length > 0 ? {} : JSON.parse(text)) as Fields
      return { status: response.status, text, body, events }
    },
  }
}

/** Expects the members that a case names by their paths; `undefined` means that the member is absent. */
export function expectMembers(body: Fields, expected: Fields): void {
  for (const [path, value] of Object.entries(expected)) expect(at(body, path), path).toEqual(value)
}

export const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((inner, name) => (inner as Fields | undefined)?.[name], value)
