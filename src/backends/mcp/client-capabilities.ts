/** What a server may ask a client for: only what the client declared in `initialize`. */
import { member, textOf } from './json/scan.ts'
import type { McpRequest } from './message.ts'

type Members = Readonly<Record<string, unknown>>

const isRecord = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Requests of servers, with the capability of the client that each needs. */
const needs = new Map<string, string>([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots'],
  ['tasks/get', 'tasks'],
  ['tasks/result', 'tasks'],
  ['tasks/list', 'tasks'],
  ['tasks/cancel', 'tasks'],
])

/** Is it a request by its method? Without an id, such a message asks for nothing. */
export const isServerRequest = (method: string): boolean => method === 'ping' || needs.has(method)

/** `hello`: JSON of the params of the client's `initialize`. */
export function mayAskClient(hello: string, { method, text, params }: McpRequest): boolean {
  const name = needs.get(method)
  // Every client answers a ping; what the protocol does not name is between server and client.
  if (name === undefined) return true
  const said: unknown = JSON.parse(hello)
  const capabilities = isRecord(said) ? said.capabilities : undefined
  const capability = isRecord(capabilities) ? capabilities[name] : undefined
  if (!isRecord(capability)) return false
  if (name !== 'elicitation') return true
  const mode = textOf(text, member(params, 'mode')) ?? 'form'
  // An empty object stands for forms, which were there first.
  return isRecord(capability[mode]) || (mode === 'form' && capability.url === undefined)
}
