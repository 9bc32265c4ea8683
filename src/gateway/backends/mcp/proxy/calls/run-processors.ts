/** Sends the messages of clients to the processors of a policy, in order; each sees what the previous one left. */
import type { AuthorizationError } from '../../../../../../proto/gen/called/ext_mcp_pb.ts'
import { isObject } from '../../../../../ground/base/json-object.ts'
import { member, membersOf, rawOf } from '../../json/node.ts'
import { codes, errorText, requestText, resultText } from '../../json-rpc.ts'
import { type McpRequest, type McpResponse, readRequest, readResponse } from '../../message.ts'
import { roundKeys } from '../../meta-keys.ts'
import type { ProtocolEra } from '../../methods.ts'
import type { CheckedMessage, Processor, ProcessorResult } from '../../policy/processor.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import { decode } from '../target/response-reader.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { refusedCall } from './call-refusal.ts'
import { orRefused } from './guard-messages.ts'
import { refusal } from './located-item.ts'

/** The processors of one policy, and the targets whose messages they get. */
export interface ProcessorChain {
  readonly exchange: McpExchange
  /** ProtocolEra of the client. */
  readonly era: ProtocolEra
  readonly processors: readonly Processor[]
  /** A target with the policy. */
  readonly entry: McpTargetEntry
  /** Names of all targets of the message that have the policy. */
  readonly services: readonly string[]
}

type Direction = 'Request' | 'Response'

/** Returns the request after the processors, or the response if one refuses it. Never rejects. */
export async function processRequest(
  chain: ProcessorChain,
  request: McpRequest,
): Promise<McpRequest | ClientResponse> {
  let current = request
  for (const [at, processor] of chain.processors.entries()) {
    if (!processor.checks(request.method, 'Request')) continue
    const { text, params } = current
    const message = messageOf(chain, request.method, params && rawOf(text, params))
    const result = await processor.checkRequest(message)
    const next = result.kind === 'pass' ? afterRequest(chain, current, result) : undefined
    if (next !== undefined) {
      notePass(chain, request, { processor, at, direction: 'Request' }, next !== current)
      current = next
      continue
    }
    const refused = refusedBy(chain, request, result, { processor, at, direction: 'Request' })
    if (refused !== undefined) return refused
  }
  return current
}

/** Returns the response after the processors, or the one of the gateway if one refuses it. Errors are not sent. */
export async function processResponse(
  chain: ProcessorChain,
  request: Pick<McpRequest, 'id' | 'method'>,
  response: McpResponse,
): Promise<McpResponse | ClientResponse> {
  let current = response
  for (const [at, processor] of chain.processors.entries()) {
    const { text, result: node } = current
    if (node === undefined) break
    if (!processor.checks(request.method, 'Response')) continue
    const message = messageOf(chain, request.method, rawOf(text, node))
    const result = await processor.checkResponse(message)
    const next = result.kind === 'pass' ? afterResponse(current, request, result) : undefined
    if (next !== undefined) {
      notePass(chain, request, { processor, at, direction: 'Response' }, next !== current)
      current = next
      continue
    }
    const refused = refusedBy(chain, request, result, { processor, at, direction: 'Response' })
    if (refused !== undefined) return refused
  }
  return current
}

const messageOf = (
  { exchange, services }: ProcessorChain,
  method: string,
  json: string | undefined,
): CheckedMessage => ({ exchange: exchange.client, services, method, json })

type PassResult = Extract<ProcessorResult, { readonly kind: 'pass' }>

/** Returns undefined if the changes cannot be applied. */
function afterRequest(
  { exchange }: ProcessorChain,
  request: McpRequest,
  { changed, headers, metadata }: PassResult,
): McpRequest | undefined {
  const next = changed === undefined ? request : changedRequest(request, changed)
  if (next === undefined) return undefined
  if (headers !== undefined && !exchange.changeHeaders(headers)) return undefined
  if (metadata !== undefined) exchange.learnGuardrails(metadata)
  return next
}

/** Members of params that belong to the gateway and the client. Services cannot change them. */
const clientMembers = ['_meta', ...roundKeys]

function changedRequest(request: McpRequest, bytes: Uint8Array): McpRequest | undefined {
  const { id, method } = request
  const read = orRefused(() => {
    const json = decode(bytes).text.trim()
    const found = readRequest(requestText(id, method, json))
    // A service may replace params, but no other member of the message.
    return found?.params !== undefined && rawOf(found.text, found.params) === json
      ? found
      : undefined
  })
  if (read === undefined) return undefined
  const own = clientMembers.flatMap((key) => {
    const node = member(request.params, key)
    return node === undefined ? [] : [`"${key}":${rawOf(request.text, node)}`]
  })
  const members = [...membersOf(read.text, read.params, clientMembers), ...own]
  return orRefused(() => readRequest(requestText(id, method, `{${members.join(',')}}`)))
}

/** Members that results keep if the service leaves them out, because clients of the modern era need them. */
const resultMembers = ['resultType', 'requestState', 'ttlMs', 'cacheScope']

function afterResponse(
  response: McpResponse,
  { id }: Pick<McpRequest, 'id'>,
  { changed }: PassResult,
): McpResponse | undefined {
  if (changed === undefined) return response
  return orRefused(() => {
    const json = decode(changed).text.trim()
    const read = readResponse(resultText(id, json))
    const { text = '', result } = read ?? {}
    if (result?.type !== 'object' || rawOf(text, result) !== json) return undefined
    const own = resultMembers.flatMap((key) => {
      const node = member(response.result, key)
      const isKept = node !== undefined && member(result, key) === undefined
      return isKept ? [`"${key}":${rawOf(response.text, node)}`] : []
    })
    if (own.length === 0) return read
    return readResponse(resultText(id, `{${[...membersOf(text, result, []), ...own].join(',')}}`))
  })
}

interface ProcessorCall {
  readonly processor: Processor
  /** Position in the list of the policy. */
  readonly at: number
  readonly direction: Direction
}

function notePass(
  chain: ProcessorChain,
  request: Pick<McpRequest, 'method'>,
  { at, direction }: ProcessorCall,
  isChanged: boolean,
): void {
  const action = isChanged ? 'Mask' : 'Allow'
  chain.exchange.noteCheck(chain.entry, { phase: direction, guard: 'processor', rule: at, action })
  if (isChanged) note(chain, request, `${direction.toLowerCase()} processor ${at}: Mask`)
}

/** Returns the refusal of a message; undefined if the service has failed and `failureMode` is FailOpen. */
function refusedBy(
  chain: ProcessorChain,
  request: Pick<McpRequest, 'id' | 'method'>,
  result: ProcessorResult,
  { processor, at, direction }: ProcessorCall,
): ClientResponse | undefined {
  const name = `${direction.toLowerCase()} processor ${at}`
  const action = result.kind === 'refused' ? 'Reject' : 'Fail'
  chain.exchange.noteCheck(chain.entry, { phase: direction, guard: 'processor', rule: at, action })
  if (result.kind === 'refused') {
    note(chain, request, `${name}: Reject, code ${result.error.code}`, true)
    return refusalOf(chain, request, result.error)
  }
  const detail = result.kind === 'failed' ? result.detail : 'the change of the service is not valid'
  note(chain, request, `${name}: Fail, ${detail}`, !processor.failsOpen)
  if (processor.failsOpen) return undefined
  const message = `The ${direction.toLowerCase()} could not be checked`
  return refusedCall(request, chain.era, message)
}

/** Codes of errors for codes of services: unknown, permission denied, resource exhausted, invalid. */
const errorCodes = [codes.internal, -32_001, -32_000, codes.invalidParams]

function refusalOf(
  { era }: ProcessorChain,
  request: Pick<McpRequest, 'id' | 'method'>,
  { code, reason, mcpError }: AuthorizationError,
): ClientResponse {
  const own = mcpError === undefined ? undefined : readError(mcpError)
  if (own !== undefined) return { text: errorText(request.id, own.code, own.message, own.data) }
  const message = reason === '' ? 'This request is not allowed' : reason
  if (request.method === 'tools/call') return refusedCall(request, era, message)
  return refusal(request, errorCodes[code] ?? codes.internal, message)
}

/** Reads a JSON-RPC error. Undefined if it is not one. */
function readError(bytes: Uint8Array) {
  let error: unknown
  try {
    error = JSON.parse(Buffer.from(bytes).toString())
  } catch {
    return undefined
  }
  if (!isObject(error)) return undefined
  const { code, message, data } = error
  const isError = Number.isSafeInteger(code) && typeof message === 'string'
  return isError ? { code: code as number, message, data } : undefined
}

function note(
  { exchange, entry }: ProcessorChain,
  { method }: Pick<McpRequest, 'method'>,
  text: string,
  isRefused = false,
): void {
  exchange.noteRefusal(entry, `${method}: ${text}`, isRefused)
  if (isRefused) exchange.noteRefusedBy('processor')
}
