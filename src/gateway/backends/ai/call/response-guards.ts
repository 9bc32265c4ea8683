/**
 * Runs the guards of a response. If all of them are masks, they apply to the bytes of a stream. If guards ask services,
 * a stream is checked in windows, or held until all guards have checked all of it.
 */
import type { Mask } from '../../../../engines/core/index.ts'
import type { StreamEvent } from '../../../../engines/messages/chat.ts'
import type { ChatFormat } from '../../../../engines/messages/format.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import {
  mapErrorsBeside,
  mapEveryOfError,
  textOfErrorsBeside,
  textOfEvery,
} from '../../../../engines/messages/mask/error-texts.ts'
import { HeldStream } from '../../../../engines/messages/mask/held-stream.ts'
import { MatchCounts, type OnMatch } from '../../../../engines/messages/mask/match-counts.ts'
import { maskTexts } from '../../../../engines/messages/mask/parts-masker.ts'
import type { Places } from '../../../../engines/messages/mask/places.ts'
import type { RegexChain } from '../../../../engines/messages/mask/regex-chain.ts'
import {
  emptyTexts,
  keepTexts,
  mapRepeatedTexts,
} from '../../../../engines/messages/mask/repeated-texts.ts'
import { jsonAware, scopedMap } from '../../../../engines/messages/mask/scoped-texts.ts'
import type { RoleText } from '../../../../engines/messages/mask/slot.ts'
import { responseTexts, withResponseTexts } from '../../../../engines/messages/mask/slots.ts'
import { StreamAudits } from '../../../../engines/messages/mask/stream-audits.ts'
import { StreamGuard } from '../../../../engines/messages/mask/stream-guard.ts'
import { mapResponseTexts } from '../../../../engines/messages/mask/texts.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { FieldPairs } from '../../../../ground/exchange/memory-message.ts'
import { askGuard, type Decision } from '../guards/ask-guard.ts'
import {
  concurrentGroups,
  isAudit,
  isRegex,
  type PlacedGuard,
  sampled,
} from '../policy/bind-guard.ts'
import { guardRefusal } from '../policy/guard-refusal.ts'
import { type Recorder, recordCheck } from './guard-checks.ts'
import type { ModelCall } from './model-call.ts'
import { isRestorer } from './placeholders.ts'

/** Returns true if the gateway may change the response: for guards, or to restore placeholders. */
export const actsOnResponse = ({ policy, restorer }: ModelCall): boolean =>
  policy?.guardsResponses === true || restorer !== undefined

/** The masks for the bytes of a stream; undefined if there are none, or if a guard needs parsed messages. */
const chainFor = ({ policy, restorer }: ModelCall): RegexChain | undefined =>
  restorer === undefined ? (policy?.responseChain ?? policy?.leadingChain) : restorer.chain

/** Returns true if the whole response must arrive before the client gets any of it. */
export function holdsResponse(call: ModelCall): boolean {
  const guards = responseGuardsOf(call)
  const { policy, outgoing } = call
  if (policy === undefined || guards.length === 0) return false
  if (windowGuardsOf(call).length > 0) return false
  if (!guards.every(({ guard }) => isRegex(guard))) return true
  if (guards.some(({ scope }) => scope !== undefined)) return true
  if (outgoing?.format.core === undefined) return true
  return actsOnResponse(call) && chainFor(call) === undefined
}

/**
 * Returns the guards that check a streamed response in windows; none if it must be held, or if the core masks it. The
 * core masks with the patterns unless they are among the returned guards.
 */
export function windowGuardsOf(call: ModelCall): readonly PlacedGuard[] {
  const { policy, outgoing } = call
  // Texts are restored after all guards.
  if (policy === undefined || call.restorer !== undefined) return []
  const guards = responseGuardsOf(call)
  const canMask = outgoing?.format.core !== undefined
  const services = guards.filter(({ guard }) => !isRegex(guard))
  const hasPatterns = services.length < guards.length
  if (canMask && services.length === 0) return []
  if (policy.isWindowed && (canMask || !hasPatterns)) return services
  return policy.fitsWindows ? guards : []
}

/** Returns the guards of the response that is received: an audit may read only a share of them. */
export function responseGuardsOf(call: ModelCall): readonly PlacedGuard[] {
  const { policy } = call
  if (call.sampled === undefined || call.sampled.policy !== policy) {
    call.sampled = { policy, guards: sampled(policy?.responseGuards ?? []) }
  }
  const { guards } = call.sampled
  const { restorer, answer } = call
  if (restorer === undefined) return guards
  // A stored answer has the texts of the client, which guards do not see in an answer of the provider.
  const hiding = answer?.hit === undefined ? [] : restorer.hidingGuards
  return [...hiding, ...guards, ...restorer.guards]
}

/** Returns the guard of a response that is streamed; undefined if no guard masks it. */
export function streamGuardOf(
  call: ModelCall,
  { name, core: format }: ChatFormat,
  eventLimit: number,
): StreamGuard | undefined {
  const chain = chainFor(call)
  if (chain === undefined) return undefined
  if (format === undefined) throw new Error(`the core cannot guard streams of ${name}`)
  const heldLimit = call.context.exchange.bufferLimit
  return new StreamGuard(chain, { format, eventLimit, heldLimit })
}

/** Returns the audits by patterns of a response that is streamed; undefined if there are none. */
export function streamAuditsOf(
  call: ModelCall,
  { core: format }: ChatFormat,
  eventLimit: number,
): StreamAudits<PlacedGuard> | undefined {
  const { policy, context } = call
  if (policy === undefined || format === undefined) return undefined
  const audits = responseGuardsOf(call).filter((one) => isAudit(one) && isRegex(one.guard))
  if (audits.length === 0) return undefined
  const heldLimit = context.exchange.bufferLimit
  return new StreamAudits(
    audits.map((placed) => [placed, policy.auditChain(placed)] as const),
    { format, eventLimit, heldLimit },
  )
}

/** The texts of a response, which guards read and change. */
interface GuardableResponse {
  texts(scope?: Places): readonly RoleText[]
  /** Masks the texts, or only counts matches for an audit; returns true if anything was masked. */
  mask(mask: Mask, onMatch: OnMatch, isAudit: boolean, scope?: Places): boolean
  /** Replaces the texts; returns false if their number differs. */
  replace(texts: readonly RoleText[], scope?: Places): boolean
}

/** The guarded response; `refusal` is set if a guard rejects it. */
interface GuardedResponse {
  readonly body: JsonObject
  readonly refusal: RespondVerdict | undefined
}

/** Runs the guards, of which there is at least one, on a whole response. */
export async function guardResponse(
  call: ModelCall,
  body: JsonObject,
  format: ChatFormat,
): Promise<GuardedResponse> {
  let current = mapRepeatedTexts(body, keepTexts)
  const guarded: GuardableResponse = {
    texts(scope) {
      return [...responseTexts(current, format, scope), ...textOfErrorsBeside(current)]
    },
    mask(mask, onMatch, isAudit, scope) {
      const before = current
      const mapOf = (onFound?: OnMatch) =>
        scopedMap(
          jsonAware((texts) => maskTexts(mask, texts, onFound).texts),
          scope,
        )
      const map = mapOf()
      const counting = mapOf(onMatch)
      const texts = mapResponseTexts(
        mapRepeatedTexts(current, map),
        format.texts,
        counting,
        format.ownTexts,
      )
      const masked = mapErrorsBeside(texts, counting)
      if (!isAudit) current = masked
      return masked !== before
    },
    replace(texts, scope) {
      const shown = guarded.texts(scope)
      if (texts.length !== shown.length) return false
      const count = responseTexts(current, format, scope).length
      const replaced = withResponseTexts(current, format, texts.slice(0, count), scope)
      if (replaced === undefined) return false
      const isChanged = texts.some(({ content }, at) => content !== shown[at]?.content)
      // Citations and errors are emptied, because the guard did not see their texts as they are.
      current = isChanged
        ? mapErrorsBeside(mapRepeatedTexts(replaced, emptyTexts), emptyTexts)
        : replaced
      return true
    },
  }
  const refusal = await judge(call, guarded)
  return { body: current, refusal }
}

/** The guarded error of a provider; `refusal` is set if a guard rejects it. */
interface GuardedError {
  readonly value: unknown
  readonly refusal: RespondVerdict | undefined
}

/** Runs the guards, of which there is at least one, on an error that came in place of a response. */
export async function guardError(call: ModelCall, error: unknown): Promise<GuardedError> {
  let current = error
  const guarded: GuardableResponse = {
    texts: () => textOfEvery(current),
    mask(mask, onMatch, isAudit) {
      const before = current
      const masked = mapEveryOfError(current, (texts) => maskTexts(mask, texts, onMatch).texts)
      if (!isAudit) current = masked
      return masked !== before
    },
    replace([text, ...rest]) {
      const [shown] = guarded.texts()
      if (rest.length > 0 || (text === undefined) !== (shown === undefined)) return false
      if (text === undefined || text.content === shown?.content) return true
      // The formats of vendors have the message in one of these places.
      current = { error: { message: text.content }, message: text.content }
      return true
    },
  }
  const refusal = await judge(call, guarded)
  return { value: current, refusal }
}

/** The guarded text of a response that is no conversation; `refusal` is set if a guard rejects it. */
interface GuardedText {
  /** Undefined if no guard has changed anything. */
  readonly text: string | undefined
  readonly refusal: RespondVerdict | undefined
}

/** Returns a held stream with the texts that the guards of the call read. */
export function holdStream(
  call: ModelCall,
  format: ChatFormat,
  events: readonly StreamEvent[],
): HeldStream {
  const hasOptIn = responseGuardsOf(call).some(({ scope }) => scope !== undefined)
  return new HeldStream(format, events, { hasOptIn })
}

/** Runs the guards on a text and on the texts that repeat it in pieces. If they change any, the text must be whole. */
export async function guardText(
  call: ModelCall,
  text: string,
  pieces: readonly string[],
): Promise<GuardedText> {
  let current = [text, ...pieces]
  let isChanged = false
  const isRead = (scope: Places | undefined) => scope?.has('Messages') !== false
  const put = (texts: readonly string[]): boolean => {
    const differs = texts.some((one, at) => one !== current[at])
    isChanged ||= differs
    current = [...texts]
    return differs
  }
  const refusal = await judge(call, {
    texts: (scope) =>
      isRead(scope) ? current.map((content) => ({ role: 'assistant', content })) : [],
    mask(mask, onMatch, isAudit, scope) {
      if (!isRead(scope)) return false
      const masked = current.map((one) => maskTexts(mask, [one], onMatch).texts[0] ?? '')
      return isAudit ? masked.some((one, at) => one !== current[at]) : put(masked)
    },
    replace(texts, scope) {
      if (!isRead(scope)) return texts.length === 0
      if (texts.length !== current.length) return false
      put(texts.map(({ content }) => content))
      return true
    },
  })
  return { text: isChanged ? current[0] : undefined, refusal }
}

/** Runs the guards on a held stream; returns undefined if they accept it. */
export function guardHeld(call: ModelCall, held: HeldStream): Promise<RespondVerdict | undefined> {
  const { bufferLimit } = call.context.exchange
  if (held.length > bufferLimit) {
    throw new LlmError(502, `the response has more than ${bufferLimit} characters to be judged`)
  }
  return judge(call, held)
}

/** Runs guards in order. Guards that read the same texts are asked at once. Calls `record` with each result. */
export async function judge(
  call: ModelCall,
  guarded: GuardableResponse,
  guards = responseGuardsOf(call),
  record: Recorder = recordCheck,
): Promise<RespondVerdict | undefined> {
  for (const group of concurrentGroups(guards)) {
    const results = await Promise.allSettled(group.map((placed) => decide(call, placed, guarded)))
    for (const [at, placed] of group.entries()) {
      const result = results[at]
      if (result?.status !== 'fulfilled') {
        record(call, placed, 'Fail')
        throw result?.reason
      }
      if (call.context.over) return undefined
      const { action, given } = result.value
      if (isRestorer(placed)) continue
      const text = record(call, placed, action, result.value)
      if (action === 'Reject') {
        return { ...guardRefusal(placed, given), ...(text !== undefined && { detail: text }) }
      }
    }
  }
  return undefined
}

/** Masks are put into the response at once. */
async function decide(
  { context: { exchange }, answer }: ModelCall,
  { guard, settings, scope }: PlacedGuard,
  guarded: GuardableResponse,
): Promise<Decision<true>> {
  if (isRegex(guard)) {
    const counts = new MatchCounts()
    const hasMasked = guarded.mask(guard.mask, counts.add, settings.isAudit === true, scope)
    const action = settings.isAudit === true ? 'Audit' : 'Mask'
    const detail = counts.textOf(guard.mask)
    return { action: hasMasked ? action : 'Allow', detail, matches: counts.namesOf(guard.mask) }
  }
  const { hit } = answer ?? {}
  const headers =
    exchange.response?.headers ??
    new FieldPairs(hit === undefined ? [] : [['content-type', hit.contentType]])
  const question = {
    direction: 'response' as const,
    texts: guarded.texts(scope),
    exchange,
    headers,
  }
  return askGuard(guard, settings, question, (texts) => guarded.replace(texts, scope) || undefined)
}
