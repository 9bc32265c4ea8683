/** Writes the request that a provider gets in place of the client's. */
import type { KnownFormat } from '../../../../engines/messages/formats/index.ts'
import { FormBody } from '../../../../engines/messages/multipart/form-body.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import type { HeaderFields } from '../../../../ground/exchange/exchange.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { sendForm } from './form-request.ts'
import { apiVersion, type ModelCall } from './model-call.ts'

/** Headers to remove: those about the client's bytes, and the one that asks for a compressed response. */
export const removedHeaders = [
  'content-encoding',
  'accept-encoding',
  'content-md5',
  'digest',
  'content-digest',
]

/** What is sent to a provider: bytes, or the client's own multipart body with other fields. */
export type SentBody = Buffer | FormBody

export function writeRequest(call: ModelCall, outgoing: OutgoingRequest, sent: SentBody): void {
  const { context } = call
  const { request, requestBody } = context.exchange
  if (sent instanceof FormBody) sendForm(call, sent, outgoing)
  else requestBody.replace(sent)
  for (const name of removedHeaders) request.headers.remove(name)
  const { plan, format } = outgoing
  const isOfOtherVendor = plan.kind === 'native' && plan.needsModel === true
  if (plan.kind !== 'native' || isOfOtherVendor) removeVendorHeaders(request.headers, format)
  if (isOfOtherVendor) {
    const headers = format.headersOf?.(call.request?.body.whole ?? {}) ?? []
    for (const [name, value] of headers) request.headers.set(name, value)
  }
  if (!(sent instanceof FormBody)) request.headers.set('content-type', 'application/json')
  request.method = 'POST'
  if (!call.overridePath()) setPath(context, plan)
}

/** Removes what the client sends to the vendor of its format: the provider is another one. */
function removeVendorHeaders(headers: HeaderFields, { vendorHeaders }: KnownFormat): void {
  for (const [name] of [...headers.entries()]) {
    if (vendorHeaders.test(name.toLowerCase())) headers.remove(name)
  }
}

/**
 * Sets the vendor's path. If the vendor has the client's API, the client's query is kept, except for the
 * API version and the parameters that the vendor's path sets.
 */
export function setPath(
  { exchange: { request } }: RequestContext,
  plan: OutgoingRequest['plan'],
): void {
  if (request.query === undefined && !plan.path.includes('?')) {
    request.path = plan.path
    return
  }
  const [path = '', ...rest] = plan.path.split('?')
  const own = rest.join('?')
  const isSame = plan.kind === 'native' && plan.change === undefined
  const given = isSame ? (request.query ?? '').split('&') : []
  const names = new Set([apiVersion, ...own.split('&').map(nameOfParameter)])
  const kept = given.filter((one) => !names.has(nameOfParameter(one)))
  const all = [own, ...kept].filter((part) => part !== '')
  request.path = path
  request.query = all.length === 0 ? undefined : all.join('&')
}

const nameOfParameter = (parameter: string): string => parameter.split('=', 1)[0] ?? ''
