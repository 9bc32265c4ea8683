import type { ImmediateResponse } from '../../../../proto/gen/called/ext_proc_pb.ts'
import type { RespondVerdict } from '../../../ground/exchange/exchange.ts'
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
