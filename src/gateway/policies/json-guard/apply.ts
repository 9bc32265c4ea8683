import { PathTexts } from '../../../engines/json/path-texts.ts'
import { parsePath } from '../../../engines/json/paths.ts'
import { bufferOf } from '../../../ground/base/buffers.ts'
import { CodingProblem, decodeContent } from '../../../ground/base/content-coding.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import {
  type Body,
  type Exchange,
  type HeaderFields,
  next,
  refuse,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import { takeOver } from '../../../ground/exchange/take-over.ts'
import {
  bindGuards,
  checkText,
  type GuardServices,
  isAudit,
  isRegex,
  type PlacedGuard,
} from '../../backends/ai/policy/bind-guard.ts'
import { codingOf } from '../../variables/decoded.ts'
import type { PolicyApply } from '../define.ts'
import { type JsonGuardConfig, type PathGuardConfig, shape } from './config.ts'
import { type BodyKind, kindOf, readBody, UnreadableBody } from './guarded-body.ts'
import { judge, stepName } from './judge.ts'
import { MaskedStream } from './masked-stream.ts'

/** The guards of one direction. */
class PathGuards {
  readonly guards: readonly PlacedGuard[]
  readonly finder: PathTexts
  /** Whether a guard may mask or refuse texts. */
  readonly acts: boolean
  /** Whether streams can be masked while they pass: no guard asks a service or refuses texts. */
  readonly masksStreams: boolean

  /** @throws Error if a secret has not arrived. */
  constructor(
    configs: readonly PathGuardConfig[],
    phase: PlacedGuard['phase'],
    services: GuardServices,
  ) {
    const settings = configs.map(({ guard }) => guard)
    this.guards = bindGuards(settings, phase, services)
    this.finder = new PathTexts(configs.map(({ paths }) => paths.map(needPath)))
    this.acts = !this.guards.every(isAudit)
    this.masksStreams = this.guards.every(
      (placed) => isRegex(placed.guard) && (isAudit(placed) || placed.guard.action !== 'Reject'),
    )
  }
}

function needPath(text: string) {
  const path = parsePath(text)
  if (typeof path === 'string') throw new Error(`${text}: ${path}`)
  return path
}

/** Header fields that describe the bytes of a body. */
const ofBody = ['content-encoding', 'content-md5', 'digest', 'content-digest', 'repr-digest']

const statusOf = { unknown: 415, damaged: 400, tooLarge: 413 } as const

class JsonGuard {
  readonly #request: PathGuards
  readonly #response: PathGuards
  readonly #passesOther: boolean

  constructor(config: JsonGuardConfig, services: GuardServices) {
    this.#request = new PathGuards(config.request, 'Request', services)
    this.#response = new PathGuards(config.response, 'Response', services)
    this.#passesOther = config.passesOther
  }

  async onRequest(exchange: Exchange): Promise<Verdict> {
    const { request, requestBody, bufferLimit } = exchange
    const { headers } = request
    if (request.upgrade !== undefined || request.method === 'CONNECT') {
      if (this.#request.acts || this.#response.acts) {
        return refuse(403, 'Guardrail', 'guards cannot read tunnels')
      }
      noteUnread([...this.#request.guards, ...this.#response.guards], exchange, 'it is a tunnel')
      return next
    }
    // Guards cannot read a part of a document, so the backend must not send one.
    if (this.#response.acts) for (const name of ['range', 'if-range']) headers.remove(name)
    if (this.#request.guards.length === 0 || requestBody.length === 0) return next
    const outcome = await this.#check(this.#request, 'request', exchange, requestBody, headers)
    if (outcome instanceof UnreadableBody) {
      const text = `the request body cannot be guarded: ${outcome.message}`
      const status = statusOf[outcome.kind]
      const limit = outcome.kind === 'tooLarge' ? ` (limit: ${bufferLimit} bytes)` : ''
      return refuse(status, 'Guardrail', `${text}${limit}`)
    }
    return outcome
  }

  async onResponse(exchange: Exchange): Promise<void> {
    const { request, response, responseBody, bufferLimit } = exchange
    const { guards, acts, masksStreams } = this.#response
    if (response === undefined || responseBody === undefined || guards.length === 0) return
    const { status, headers } = response
    if (request.method === 'HEAD' || status === 204 || status === 304) return
    const kind = kindOf(headers)
    // Plain text from the gateway itself, such as an error, contains nothing of the backend.
    const isOwn = responseBody.divert === undefined
    if (isOwn && kind === 'other') return
    if (status === 206 && acts) throw unguardable('it is a part of a document')
    const isStream = kind === 'lines' || kind === 'events'
    if (isStream && masksStreams && codingOf(headers) === undefined) {
      if (acts) removeFields(headers)
      responseBody.through(new MaskedStream(this.#response, exchange, kind))
      return
    }
    const outcome = await this.#check(this.#response, 'response', exchange, responseBody, headers)
    if (outcome instanceof UnreadableBody) {
      const limit = outcome.kind === 'tooLarge' ? ` (limit: ${bufferLimit} bytes)` : ''
      throw unguardable(`${outcome.message}${limit}`)
    }
    if (outcome.kind === 'respond') takeOver(exchange, outcome, stepName)
  }

  dispose(): void {
    for (const { guard } of [...this.#request.guards, ...this.#response.guards]) guard.dispose()
  }

  /** Reads and judges a body. Bodies that cannot be read pass if no guard acts. */
  async #check(
    side: PathGuards,
    direction: 'request' | 'response',
    exchange: Exchange,
    body: Body,
    headers: HeaderFields,
  ): Promise<Verdict | UnreadableBody> {
    const kind = kindOf(headers)
    const read = await this.#read(side, kind, exchange, body, headers)
    if (read === undefined) return next
    if (read instanceof UnreadableBody) {
      const passes = !side.acts || (read === otherType && this.#passesOther)
      if (!passes) return read
      noteUnread(side.guards, exchange, read.message)
      return next
    }
    const judged = {
      texts: read.content.texts,
      values: read.content.texts.map(({ value }) => value),
    }
    const refusal = await judge(side.guards, judged, { exchange, direction })
    if (refusal !== undefined) return refusal
    const isChanged = judged.texts.some(({ value }, at) => value !== judged.values[at])
    if (side.acts && (isChanged || read.isDecoded)) {
      removeFields(headers)
      body.replace(read.content.write(judged.values))
    }
    return next
  }

  /** Returns undefined if the body is empty. */
  async #read(
    { finder }: PathGuards,
    kind: BodyKind,
    { bufferLimit }: Exchange,
    body: Body,
    headers: HeaderFields,
  ) {
    const isOther = kind === 'other'
    const buffered = await body.buffer(isOther ? 1 : bufferLimit)
    if (buffered.complete && buffered.bytes.length === 0) return undefined
    if (isOther) return otherType
    if (!buffered.complete) return new UnreadableBody('tooLarge', 'it is too large')
    const coding = codingOf(headers)
    const decoded =
      coding === undefined
        ? buffered.bytes
        : await decodeContent(buffered.bytes, coding, bufferLimit)
    if (decoded instanceof CodingProblem) return new UnreadableBody(decoded.kind, decoded.message)
    const content = readBody(bufferOf(decoded), kind, finder, bufferLimit)
    if (content instanceof UnreadableBody) return content
    return { content, isDecoded: coding !== undefined }
  }
}

function noteUnread(guards: readonly PlacedGuard[], exchange: Exchange, reason: string): void {
  for (const placed of guards) addNote(exchange, stepName, checkText(placed, 'FailOpen', reason))
}

const otherType = new UnreadableBody('unknown', 'its Content-Type is not JSON')

const unguardable = (detail: string) => new GatewayError('response_unguardable', detail)

/** Removes the header fields that describe the original bytes of the body. */
function removeFields(headers: HeaderFields): void {
  for (const name of ofBody) headers.remove(name)
}

const apply: PolicyApply<JsonGuardConfig> = {
  shape,
  bind(config, callouts, secrets, host) {
    const guard = new JsonGuard(config, { callouts, secrets, host })
    return {
      onRequest: (exchange) => guard.onRequest(exchange),
      ...(config.response.length > 0 && { onResponse: (exchange) => guard.onResponse(exchange) }),
      dispose: () => guard.dispose(),
    }
  },
}

export default apply
