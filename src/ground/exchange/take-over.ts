import { bytesOf } from '../base/buffers.ts'
import type { Exchange, RespondVerdict } from './exchange.ts'
import { addNote } from './notes.ts'

/** Replaces the current response with one from a policy. `step` names the policy in the record. */
export function takeOver(exchange: Exchange, replacement: RespondVerdict, step: string): void {
  const { response, responseBody } = exchange
  if (response === undefined || responseBody === undefined) return
  addNote(exchange, step, `${replacement.detail} to the response`)
  response.status = replacement.status
  for (const name of new Set([...response.headers.entries()].map(([name]) => name))) {
    response.headers.remove(name)
  }
  for (const [name, value] of replacement.headers ?? []) response.headers.add(name, value)
  responseBody.replace(bytesOf(replacement.body ?? ''), true)
}
