import type { ImmediateResponse } from '../../../../proto/gen/called/ext_proc_pb.ts'
import { bytesOf } from '../../../ground/base/buffers.ts'
import type { Exchange, RespondVerdict } from '../../../ground/exchange/exchange.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import { fieldChanges } from '../ext-auth/field-changes.ts'

/** The processor's response to the client; undefined if its status is not valid in a final response. */
export function immediateResponse({
  status,
  headers,
  body,
  grpcStatus,
}: ImmediateResponse): RespondVerdict | undefined {
  const code = status?.code || 200
  if (code < 200 || code > 599) return undefined
  const removed = new Set(headers?.removeHeaders.map((name) => name.toLowerCase()))
  const fields = fieldChanges(headers?.setHeaders ?? []).map(
    ({ name, value }) => [name, value] as const,
  )
  const names = new Set(fields.map(([name]) => name.toLowerCase()))
  const byDefault: (readonly [string, string])[] = []
  if (body.length > 0) byDefault.push(['content-type', 'text/plain'])
  if (grpcStatus !== undefined) byDefault.push(['grpc-status', `${grpcStatus.status}`])
  const kept = byDefault.filter(([name]) => !names.has(name) && !removed.has(name))
  const detail = `the processor answered with status ${code}`
  const all = [...kept, ...fields]
  return { kind: 'respond', status: code, headers: all, body, reason: 'ExtProc', detail }
}

/** Replaces the response that is being processed by the processor's response. `step` names the processor. */
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
