/** Converts header fields between messages of the processor and message heads. */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { HeaderMapSchema, HeaderMutation } from '../../../../proto/gen/called/ext_proc_pb.ts'
import { withoutRootDot } from '../../../ground/base/root-dot.ts'
import {
  type HeaderFields,
  pathAndQuery,
  type RequestHead,
  type ResponseHead,
} from '../../../ground/exchange/exchange.ts'
import { FieldPairs } from '../../../ground/exchange/memory-message.ts'
import { changeFields, fieldChanges } from '../ext-auth/field-changes.ts'

type HeaderMap = MessageInitShape<typeof HeaderMapSchema>

const entry = (key: string, value: string) => ({ key, rawValue: Buffer.from(value, 'latin1') })

/** Pseudo-headers come first. Names are in lower case, values are bytes. */
export function requestFields(request: RequestHead): HeaderMap {
  const { method, scheme, authority } = request
  return {
    headers: [
      entry(':method', method),
      entry(':scheme', scheme),
      entry(':authority', withoutRootDot(authority)),
      entry(':path', pathAndQuery(request)),
      ...plainFields(request.headers.entries()),
    ],
  }
}

export function responseFields({ status, headers }: ResponseHead): HeaderMap {
  return { headers: [entry(':status', `${status}`), ...plainFields(headers.entries())] }
}

/** Converts trailer lines. */
export function trailerFields(lines: string): HeaderMap {
  return { headers: plainFields(pairsOf(lines)) }
}

function plainFields(fields: Iterable<readonly [string, string]>) {
  const found: ReturnType<typeof entry>[] = []
  for (const [name, value] of fields) {
    const key = name.toLowerCase()
    if (key !== 'host') found.push(entry(key, value))
  }
  return found
}

function pairsOf(lines: string): (readonly [string, string])[] {
  return lines
    .split('\r\n')
    .filter((line) => line.includes(':'))
    .map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()] as const
    })
}

/**
 * Removes fields, then sets fields. `host`, `:method`, `:scheme` and `:authority` cannot be changed, as in
 * the protocol, because the route decides where a request goes; nor can fields that frame a message.
 */
export function changeRequest(request: RequestHead, mutation: HeaderMutation | undefined): void {
  if (mutation === undefined) return
  changeAll(request.headers, mutation)
  const target = lastOf(mutation, ':path')
  if (target === undefined) return
  const mark = target.indexOf('?')
  request.path = mark < 0 ? target : target.slice(0, mark)
  request.query = mark < 0 ? undefined : target.slice(mark + 1)
}

export function changeResponse(response: ResponseHead, mutation: HeaderMutation | undefined): void {
  if (mutation === undefined) return
  changeAll(response.headers, mutation)
  const status = lastOf(mutation, ':status')
  if (status !== undefined && /^[2-5]\d\d$/.test(status)) response.status = Number(status)
}

/** Applies the processor's changes to trailer lines. */
export function changeTrailers(lines: string, mutation: HeaderMutation | undefined): string {
  const fields = new FieldPairs(pairsOf(lines))
  if (mutation !== undefined) changeAll(fields, mutation)
  return fields.pairs.map(([name, value]) => `${name}: ${value}\r\n`).join('')
}

function changeAll(fields: HeaderFields, { removeHeaders, setHeaders }: HeaderMutation): void {
  for (const name of removeHeaders) {
    if (!name.startsWith(':') && name.toLowerCase() !== 'host') fields.remove(name)
  }
  changeFields(fields, fieldChanges(setHeaders))
}

function lastOf({ setHeaders }: HeaderMutation, wanted: string): string | undefined {
  const header = setHeaders.findLast(({ header: found }) => found?.key === wanted)?.header
  if (header === undefined) return undefined
  const { rawValue, value } = header
  return rawValue.length > 0 ? Buffer.from(rawValue).toString('latin1') : value
}
