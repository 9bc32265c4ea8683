/**
 * An endpoint picker over the real protocol: it reads the whole request, as pickers that look into
 * prompts do, before it says anything, and writes the body back in pieces.
 */

import type { ProcessingRequest } from '../../proto/gen/called/ext_proc_pb.ts'
import type { Certificate } from './certificates.ts'
import {
  type ExtProcServer,
  fieldsOf,
  type Processor,
  type ProcessorStream,
  setting,
  startExtProcServer,
  streamed,
} from './ext-proc-server.ts'

/** What a picker does with one request. */
export interface Pick {
  /** `address:port[,address:port...]`. */
  readonly endpoints?: string
  /** The place of its answer. If omitted, both places. */
  readonly by?: 'header' | 'metadata'
  /** The request gets this body instead. */
  readonly body?: string
  /** The request is answered with this status. */
  readonly status?: number
  /** In place of everything above. */
  readonly instead?: Processor
}

/** One request as the picker saw it. */
export interface AskedPick {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The candidate endpoints that it received. */
  readonly subset: readonly string[]
}

export interface EndpointPicker extends ExtProcServer {
  readonly asked: readonly AskedPick[]
}

const namespace = 'envoy.lb'
const key = 'x-gateway-destination-endpoint'

type Member = Readonly<Record<string, unknown>>

function metadataOf({ metadataContext }: ProcessingRequest, filter: string, name: string): unknown {
  const found = metadataContext?.filterMetadata[filter] as Member | undefined
  return found?.[name]
}

function bodyOf({ messages }: ProcessorStream): string {
  const pieces = messages.flatMap(({ request }) =>
    request.case === 'requestBody' ? [Buffer.from(request.value.body)] : [],
  )
  return Buffer.concat(pieces).toString()
}

function askedOf(stream: ProcessorStream): AskedPick {
  const [first] = stream.messages
  if (first?.request.case !== 'requestHeaders') throw new Error('no headers were sent')
  const subset = metadataOf(first, 'envoy.lb.subset_hint', `${key}-subset`) as string[] | undefined
  return { headers: fieldsOf(first.request.value), body: bodyOf(stream), subset: subset ?? [] }
}

function answer(stream: ProcessorStream, { endpoints, by, body, status }: Pick): void {
  if (status !== undefined) {
    const value = { status: { code: status }, body: Buffer.from('refused by the picker') }
    stream.send({ response: { case: 'immediateResponse', value } })
    return
  }
  const byHeader = endpoints !== undefined && by !== 'metadata'
  const byMetadata = endpoints !== undefined && by !== 'header'
  const response = byHeader ? setting({ [key]: endpoints }) : {}
  stream.send({
    response: { case: 'requestHeaders', value: { response } },
    ...(byMetadata && { dynamicMetadata: { [namespace]: { [key]: endpoints } } }),
  })
  if (stream.messages[0]?.request.case !== 'requestHeaders') return
  if (stream.messages[0].request.value.endOfStream) return
  const bytes = Buffer.from(body ?? bodyOf(stream))
  const middle = Math.ceil(bytes.length / 2)
  stream.send(streamed('requestBody', bytes.subarray(0, middle), false))
  stream.send(streamed('requestBody', bytes.subarray(middle), true))
}

/** `decide` is asked once for each request, when all of it is there. */
export async function startEndpointPicker(
  decide: (asked: AskedPick) => Pick,
  tls?: Certificate,
): Promise<EndpointPicker> {
  const asked: AskedPick[] = []
  const decided = new Map<ProcessorStream, Pick>()
  const decideOn = (stream: ProcessorStream): Pick => {
    const request = askedOf(stream)
    asked.push(request)
    const pick = decide(request)
    decided.set(stream, pick)
    return pick
  }
  const processor: Processor = (message, stream) => {
    const { request } = message
    const isWhole =
      (request.case === 'requestHeaders' || request.case === 'requestBody') &&
      request.value.endOfStream
    const pick = isWhole ? decideOn(stream) : decided.get(stream)
    if (pick?.instead !== undefined) pick.instead(message, stream)
    else if (isWhole && pick !== undefined) answer(stream, pick)
    else if (request.case === 'responseHeaders') {
      const served = metadataOf(message, namespace, `${key}-served`)
      const response = setting({ 'x-served-by': String(served) })
      stream.send({ response: { case: 'responseHeaders', value: { response } } })
    } else if (request.case === 'responseBody') {
      stream.send(streamed('responseBody', request.value.body, request.value.endOfStream))
    }
  }
  return { ...(await startExtProcServer(processor, tls)), asked }
}
