/**
 * The webhook guard's contract: `POST /request` or `/response` with the texts, an answer
 * `{"action": …}` that masks, refuses or passes. What is none of the three counts as a failure, and
 * failures refuse.
 */
import { field, isObject, type JsonObject, listAt, numberAt, parseJson, stringAt } from '../json.ts'
import type { RoleText } from './texts.ts'

export type WebhookAction =
  | { readonly type: 'pass' }
  | { readonly type: 'reject'; readonly status: number; readonly body: string }
  | { readonly type: 'mask'; readonly texts: readonly RoleText[] }

export type Direction = 'request' | 'response'

export function webhookBody(direction: Direction, texts: readonly RoleText[]): JsonObject {
  return direction === 'request'
    ? { body: { messages: texts } }
    : { body: { choices: texts.map((message) => ({ message })) } }
}

function readText(message: unknown): RoleText[] {
  const content = stringAt(message, 'content')
  return content === undefined ? [] : [{ role: stringAt(message, 'role') ?? 'user', content }]
}

function maskOf(body: JsonObject): WebhookAction | undefined {
  const messages = field(body, 'messages')
  if (Array.isArray(messages)) return { type: 'mask', texts: messages.flatMap(readText) }
  const choices = field(body, 'choices')
  if (!Array.isArray(choices)) return undefined
  const texts = listAt(body, 'choices').flatMap((choice) => readText(field(choice, 'message')))
  return texts.length === choices.length ? { type: 'mask', texts } : undefined
}

/** Undefined where the answer is none that the contract knows. */
export function readWebhookAnswer(text: string): WebhookAction | undefined {
  const action = field(parseJson(text), 'action')
  if (!isObject(action)) return undefined
  const body = field(action, 'body')
  if (isObject(body)) return maskOf(body)
  if (body === undefined || body === null) return { type: 'pass' }
  const status = numberAt(action, 'status_code')
  const isStatus =
    status !== undefined && Number.isInteger(status) && status >= 200 && status <= 599
  return typeof body === 'string' && isStatus ? { type: 'reject', status, body } : undefined
}
