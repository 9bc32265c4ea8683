/** Guards of one policy, bound for requests. What they compile in the core is theirs to free. */
import { compileRegex, type Mask, type Regex } from '../../../core/index.ts'
import { GatewayError } from '../../../errors/index.ts'
import type { ConnectionSettings } from '../../../exchange/connection.ts'
import { CopiedExchange } from '../../../exchange/derived.ts'
import type {
  Callouts,
  CalloutTarget,
  Exchange,
  HttpCallout,
  RequestHead,
} from '../../../exchange/exchange.ts'
import { FieldPairs, MemoryBody } from '../../../exchange/memory-message.ts'
import type { Step } from '../../../policies/define.ts'
import type { JsonObject } from '../json.ts'
import type { HeaderForward, ModerationConfig, Refusal, WebhookConfig } from '../policy/config.ts'
import { vendorTls } from '../providers/vendor-tls.ts'
import { isFlagged, moderationBody, moderationHost, moderationPath } from './moderation.ts'
import { compileGuardMask, type RegexGuardConfig } from './regex-guard.ts'
import type { RoleText } from './slots.ts'
import {
  type Direction,
  readWebhookAnswer,
  type WebhookAction,
  webhookBody,
  webhookPath,
} from './webhook.ts'

/** Header fields that a webhook may be told of. */
interface ReadableFields {
  getAll(name: string): string[]
}

export type Guard = RegexGuard | WebhookGuard | ModerationGuard

/** For the whole answer, unless a policy of the service says otherwise. */
const timeoutMs = 10_000
/** A mask repeats the whole conversation. */
const maxResponseBytes = 32 * 1024 * 1024

const json = ['content-type', 'application/json'] as const

export class RegexGuard {
  readonly type = 'regex'
  readonly refusal: Refusal
  readonly action: 'Mask' | 'Reject'
  readonly #config: RegexGuardConfig
  #mask: Mask | undefined

  /** @throws Error where a pattern cannot be compiled, which the control plane has ruled out. */
  constructor(config: RegexGuardConfig & { readonly refusal: Refusal }) {
    this.refusal = config.refusal
    this.action = config.action
    this.#config = config
    this.#mask = compileGuardMask(config)
  }

  /** Compiled again where somebody needs it after it was disposed. */
  get mask(): Mask {
    this.#mask ??= compileGuardMask(this.#config)
    return this.#mask
  }

  dispose(): void {
    this.#mask?.dispose()
    this.#mask = undefined
  }
}

export class WebhookGuard {
  readonly type = 'webhook'
  readonly refusal: Refusal
  readonly #target: CalloutTarget
  readonly #forwarder: HeaderForwarder
  readonly #callouts: Callouts

  constructor(
    { refusal, target, forward }: WebhookConfig & { readonly refusal: Refusal },
    callouts: Callouts,
  ) {
    if (target.type === 'invalid') throw new Error(target.message)
    this.refusal = refusal
    this.#target = target
    this.#forwarder = new HeaderForwarder(forward)
    this.#callouts = callouts
  }

  /** `headers`: of the request, or of the response. @throws GatewayError prompt_guard_failed */
  async ask(
    direction: Direction,
    texts: readonly RoleText[],
    headers: ReadableFields,
  ): Promise<WebhookAction> {
    const answer = await call(this.#callouts, {
      target: this.#target,
      path: webhookPath[direction],
      headers: [json, ...this.#forwarder.pick(headers)],
      body: bytesOf(webhookBody(direction, texts)),
    })
    const action = readWebhookAnswer(answer, direction)
    if (action === undefined) throw failed('the answer of the webhook is none that is known')
    return action
  }

  dispose(): void {
    this.#forwarder.dispose()
  }
}

export class ModerationGuard {
  readonly type = 'moderation'
  readonly refusal: Refusal
  readonly #model: string | undefined
  readonly #steps: readonly Step[]
  readonly #callouts: Callouts
  #settings: ConnectionSettings | undefined

  constructor(
    { refusal, model }: ModerationConfig & { readonly refusal: Refusal },
    steps: readonly Step[],
    callouts: Callouts,
  ) {
    this.refusal = refusal
    this.#model = model
    this.#steps = steps
    this.#callouts = callouts
  }

  /** Is one of the texts flagged? @throws GatewayError prompt_guard_failed */
  async ask(texts: readonly RoleText[], exchange: Exchange): Promise<boolean> {
    if (texts.length === 0) return false
    const body = bytesOf(moderationBody(texts, this.#model))
    const call = new ModerationExchange(exchange, body)
    for (const step of this.#steps) {
      const verdict = await step.onRequest?.(call)
      if (verdict?.kind === 'respond') throw failed('the moderation call has no credential')
    }
    return this.#read(call, body)
  }

  async #read({ request }: ModerationExchange, body: Uint8Array): Promise<boolean> {
    const settings = this.#connection()
    const port = settings.tls === undefined ? 80 : 443
    const answer = await call(this.#callouts, {
      target: { type: 'vendor', host: moderationHost, port, settings },
      path: moderationPath,
      headers: [...request.headers.entries()],
      body,
    })
    const flagged = isFlagged(answer)
    if (flagged === undefined) throw failed('the answer of the moderation endpoint has no results')
    return flagged
  }

  /** Put together once: reading the authorities of the machine takes time. */
  #connection(): ConnectionSettings {
    if (this.#settings === undefined) {
      const stated = Object.assign({}, ...this.#steps.map(({ connection }) => connection))
      this.#settings = { tls: vendorTls(), ...stated } as ConnectionSettings
    }
    return this.#settings
  }

  dispose(): void {
    // Nothing of the core.
  }
}

/** The call as the policies of its connection see it: they add credentials, or sign it. */
class ModerationExchange extends CopiedExchange {
  readonly request: RequestHead
  readonly requestBody: MemoryBody
  readonly peerCertificate: Exchange['peerCertificate']
  readonly isOver = false
  readonly learned: Exchange['learned']
  readonly facts = new Map<string, unknown>()

  constructor(exchange: Exchange, body: Uint8Array) {
    super(exchange)
    this.request = {
      method: 'POST',
      scheme: 'https',
      authority: moderationHost,
      path: moderationPath,
      query: undefined,
      version: '1.1',
      headers: new FieldPairs([json]),
    }
    this.requestBody = new MemoryBody(body)
    this.peerCertificate = exchange.peerCertificate
    this.learned = exchange.learned
  }
}

const bytesOf = (body: JsonObject): Uint8Array => Buffer.from(JSON.stringify(body))

const failed = (detail: string, cause?: unknown): GatewayError =>
  new GatewayError('prompt_guard_failed', detail, cause)

/** The text of a good answer; whatever else happens is a failure of the guard. */
async function call(
  callouts: Callouts,
  request: Pick<HttpCallout, 'target' | 'path' | 'headers' | 'body'>,
): Promise<string> {
  try {
    const answer = await callouts.http({
      ...request,
      method: 'POST',
      subtype: 'Guardrail',
      timeoutMs,
      maxResponseBytes,
    })
    if (answer.status < 200 || answer.status > 299) throw failed(`it answered ${answer.status}`)
    return Buffer.from(answer.body).toString('utf8')
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw error.code === 'prompt_guard_failed' ? error : failed(error.message, error)
  }
}

/** It says how long the call's own body is, and which host is called. */
const neverForwarded = new Set(['content-length', 'host', 'transfer-encoding', 'content-type'])

/** Headers of a name are sent along, all of them, where one of their values matches. */
class HeaderForwarder {
  readonly #forward: readonly HeaderForward[]
  #patterns = new Map<string, Regex>()

  constructor(forward: readonly HeaderForward[]) {
    this.#forward = forward.filter(({ name }) => !neverForwarded.has(name))
    for (const { type, value } of this.#forward) if (type !== 'Exact') this.#pattern(value)
  }

  pick(headers: ReadableFields): (readonly [string, string])[] {
    const picked = new Set<string>()
    return this.#forward.flatMap(({ name, type, value: wanted }) => {
      const values = headers.getAll(name)
      const isWanted = (value: string) =>
        type === 'Exact' ? value === wanted : this.#pattern(wanted).fullMatch(value)
      if (picked.has(name) || !values.some(isWanted)) return []
      picked.add(name)
      return values.map((value) => [name, value] as const)
    })
  }

  dispose(): void {
    for (const pattern of this.#patterns.values()) pattern.dispose()
    this.#patterns = new Map()
  }

  #pattern(source: string): Regex {
    const known = this.#patterns.get(source)
    if (known !== undefined) return known
    const outcome = compileRegex(source, { matchOnly: true })
    if (!outcome.ok) throw new Error(outcome.message)
    this.#patterns.set(source, outcome.regex)
    return outcome.regex
  }
}
