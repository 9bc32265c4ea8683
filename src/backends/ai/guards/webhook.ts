/**
 * The webhook guard's contract: `POST /request` or `/response` with the texts, an answer
 * `{"action": …}` that masks, refuses or passes. What is none of the three counts as a failure, and
 * failures refuse.
 */
import { field, isObject, type JsonObject, listAt, numberAt, parseJson, stringAt } from '../json.ts'
import type { RoleText } from './slots.ts'

export type WebhookAction =
  | { readonly type: 'pass' }
  /** What the webhook does not say is said by whoever wrote the guard. */
  | {
      readonly type: 'reject'
      readonly status: number | undefined
      readonly body: string | undefined
    }
  | { readonly type: 'mask'; readonly texts: readonly RoleText[] }

export type Direction = 'request' | 'response'

export const webhookPath: Readonly<Record<Direction, string>> = {
  request: '/request',
  response: '/response',
}

export function webhookBody(direction: Direction, texts: readonly RoleText[]): JsonObject {
  return direction === 'request'
    ? { body: { messages: texts } }
    : { body: { choices: texts.map((message) => ({ message })) } }
}

/** A role that is not said is empty. Undefined where a text is missing: half an answer is none. */
function readTexts(messages: readonly unknown[]): readonly RoleText[] | undefined {
  const texts = messages.flatMap((message) => {
    const content = stringAt(message, 'content')
    return content === undefined ? [] : [{ role: stringAt(message, 'role') ?? '', content }]
  })
  return texts.length === messages.length ? texts : undefined
}

function maskOf(body: JsonObject, direction: Direction): WebhookAction | undefined {
  const name = direction === 'request' ? 'messages' : 'choices'
  if (!Array.isArray(field(body, name))) return undefined
  const list = listAt(body, name)
  const texts = readTexts(
    direction === 'request' ? list : list.map((choice) => field(choice, 'message')),
  )
  return texts && { type: 'mask', texts }
}

/** Undefined where the answer is none that the contract knows. */
export function readWebhookAnswer(text: string, direction: Direction): WebhookAction | undefined {
  const action = field(parseJson(text), 'action')
  if (!isObject(action)) return undefined
  const body = field(action, 'body') ?? undefined
  if (isObject(body)) return maskOf(body, direction)
  if (body !== undefined && typeof body !== 'string') return undefined
  const status = numberAt(action, 'status_code')
  if (body === undefined && status === undefined) return { type: 'pass' }
  const isStatus =
    status !== undefined && Number.isInteger(status) && status >= 200 && status <= 599
  return { type: 'reject', status: isStatus ? status : undefined, body }
}
