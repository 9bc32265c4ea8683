/** Authorization over gRPC: Envoy's external authorization, version 3. */
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  CheckRequestSchema,
  type CheckResponse,
  CheckResponseSchema,
  type DeniedHttpResponse,
  type OkHttpResponse,
} from '../../../proto/gen/called/ext_authz_pb.ts'
import { GatewayError } from '../../errors/index.ts'
import {
  type Callouts,
  type Exchange,
  next,
  type RequestHead,
  type RespondVerdict,
  type Verdict,
} from '../../exchange/exchange.ts'
import type { LearnedRecord } from '../../exchange/learned.ts'
import { type BodyNeeds, bufferBodies } from '../../variables/index.ts'
import { bodyFor } from './body.ts'
import { checkRequest, type Surroundings } from './check-request.ts'
import type { ExtAuthConfig, GrpcAuthorization } from './config.ts'
import { bindAll, type Named } from './expressions.ts'
import { changeFields, type FieldChange, fieldChanges } from './field-changes.ts'
import { failed } from './refusals.ts'

const method = '/envoy.service.auth.v3.Authorization/Check'
/** Unless the backend has a time limit of its own. */
const timeoutMs = 2_000

export class GrpcAuthorizer implements BodyNeeds {
  readonly request: boolean
  readonly response = false
  readonly #target: ExtAuthConfig['target']
  readonly #maxBodyBytes: number | undefined
  readonly #callouts: Callouts
  readonly #settings: GrpcAuthorization
  readonly #metadata: Named | undefined
  /** Where the changes of the response wait. */
  readonly #fact: string
  readonly #surroundings: Surroundings

  constructor(
    { target, maxBodyBytes }: ExtAuthConfig,
    settings: GrpcAuthorization,
    callouts: Callouts,
    fact: string,
    surroundings: Surroundings,
  ) {
    this.#surroundings = surroundings
    this.#target = target
    this.#maxBodyBytes = maxBodyBytes
    this.#callouts = callouts
    const { requestMetadata } = settings
    this.#settings = settings
    this.#metadata = requestMetadata && bindAll(requestMetadata)
    this.#fact = fact
    this.request = this.#metadata?.some(({ expression }) => expression.request) === true
  }

  async authorize(exchange: Exchange): Promise<Verdict> {
    const body = await bodyFor(exchange, this.#maxBodyBytes)
    if (body !== undefined && 'kind' in body) return body
    await bufferBodies(exchange, this)
    const around = this.#surroundings
    const request = checkRequest(exchange, this.#settings, this.#metadata, body, around)
    const answer = await this.#ask(exchange, toBinary(CheckRequestSchema, request))
    if (answer === undefined) return failed
    return this.#judge(exchange, answer)
  }

  /** Undefined where the service gives no answer, or none that can be read. */
  async #ask(exchange: Exchange, message: Uint8Array): Promise<CheckResponse | undefined> {
    let answer: Uint8Array
    try {
      answer = await this.#callouts.grpc({
        target: this.#target,
        path: method,
        message,
        exchange,
        subtype: 'ExtAuthz',
        timeoutMs,
      })
    } catch (error) {
      if (error instanceof GatewayError) return undefined
      throw error
    }
    try {
      return fromBinary(CheckResponseSchema, answer)
    } catch {
      return undefined
    }
  }

  /** Called for responses of requests that were let pass. */
  changeResponse({ facts, response }: Exchange): void {
    const changes = facts.get(this.#fact) as readonly FieldChange[] | undefined
    if (changes !== undefined && response !== undefined) changeFields(response.headers, changes)
  }

  #judge(exchange: Exchange, { status, httpResponse, dynamicMetadata }: CheckResponse): Verdict {
    if (dynamicMetadata !== undefined) {
      const { learned } = exchange
      learned.extauthz = { ...learned.extauthz, ...(dynamicMetadata as LearnedRecord) }
    }
    const isDenied = (status?.code ?? 0) !== 0 || httpResponse.case === 'deniedResponse'
    if (isDenied) {
      return httpResponse.case === 'deniedResponse' ? denied(httpResponse.value) : failed
    }
    if (httpResponse.case === 'okResponse') this.#allow(exchange, httpResponse.value)
    return next
  }

  #allow(exchange: Exchange, ok: OkHttpResponse): void {
    const { request } = exchange
    for (const name of ok.headersToRemove) {
      if (!name.startsWith(':') && name.toLowerCase() !== 'host') request.headers.remove(name)
    }
    changeFields(request.headers, fieldChanges(ok.headers))
    changeQuery(request, ok)
    // Cookies of the service join those of the upstream.
    const forResponse = fieldChanges(ok.responseHeadersToAdd).map((change) =>
      change.name.toLowerCase() === 'set-cookie'
        ? { ...change, action: 'append' as const }
        : change,
    )
    if (forResponse.length > 0) exchange.facts.set(this.#fact, forResponse)
  }
}

/** As the service writes it; a status that no final response can have becomes 403. */
function denied({ status, headers, body }: DeniedHttpResponse): RespondVerdict {
  const code = status?.code ?? 0
  const pairs = fieldChanges(headers).map(({ name, value }) => [name, value] as const)
  return {
    kind: 'respond',
    status: code >= 200 && code <= 599 ? code : 403,
    headers: pairs,
    body,
    reason: 'ExtAuth',
  }
}

function changeQuery(request: RequestHead, ok: OkHttpResponse): void {
  const { queryParametersToSet: set, queryParametersToRemove: remove } = ok
  if (set.length === 0 && remove.length === 0) return
  const replaced = new Set([...remove, ...set.map(({ key }) => key)])
  const kept = (request.query ?? '').split('&').filter((part) => {
    return part !== '' && !replaced.has(decoded(part.split('=', 1)[0] ?? ''))
  })
  const encode = encodeURIComponent
  for (const { key, value } of set) kept.push(`${encode(key)}=${encode(value)}`)
  request.query = kept.length === 0 ? undefined : kept.join('&')
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll('+', ' '))
  } catch {
    return name
  }
}
