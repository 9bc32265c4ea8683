/**
 * Guards of answers. Masks alone work while an answer is streamed; where a guard asks a service, the
 * answer is kept back until every guard has judged all of it, so nothing of it leaks before a verdict.
 */
import type { Mask } from '../../../core/index.ts'
import type { HeaderFields, RespondVerdict } from '../../../exchange/exchange.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { ChatFormat } from '../client-formats.ts'
import type { Guard, WebhookGuard } from '../guards/bound.ts'
import { type GuardCheck, guardFailure } from '../guards/guard-check.ts'
import type { HeldStream } from '../guards/held-stream.ts'
import { maskTexts } from '../guards/parts-masker.ts'
import { emptyTexts, keepTexts, mapRepeatedTexts } from '../guards/repeated-texts.ts'
import { answerTexts, type RoleText, withAnswerTexts } from '../guards/slots.ts'
import { mapAnswerTexts, type TextsMap } from '../guards/texts.ts'
import type { JsonObject } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import type { ModelCall } from './model-call.ts'
import { guardRefusal } from './own-answers.ts'

/** Must the answer be there in one piece before any of it goes on? */
export function holdsAnswer({ policy }: ModelCall): boolean {
  return policy?.responseGuards.some(({ type }) => type !== 'regex') ?? false
}

/** Of the guards, the masks; in order. */
export function masksOf({ policy }: ModelCall): readonly Mask[] {
  return (policy?.responseGuards ?? []).flatMap((guard) =>
    guard.type === 'regex' ? [guard.mask] : [],
  )
}

/** What guards see and change of an answer. */
interface Judged {
  readonly texts: readonly RoleText[]
  /** Was anything masked? */
  mask(mask: Mask): boolean
  /** False where the texts are not as many as were shown. */
  replace(texts: readonly RoleText[]): boolean
}

/** What guards have made of an answer, or why it is refused. */
interface GuardedAnswer {
  readonly body: JsonObject
  readonly refusal: RespondVerdict | undefined
}

/** Asks the guards of a whole answer. */
export async function guardAnswer(
  context: RequestContext,
  call: ModelCall,
  body: JsonObject,
  format: ChatFormat,
): Promise<GuardedAnswer> {
  const isGuarded = (call.policy?.responseGuards.length ?? 0) > 0
  let current = isGuarded ? mapRepeatedTexts(body, keepTexts) : body
  const judged: Judged = {
    get texts() {
      return answerTexts(current, format)
    },
    mask(mask) {
      const before = current
      const map: TextsMap = (texts) => maskTexts(mask, texts).texts
      current = mapAnswerTexts(mapRepeatedTexts(current, map), format, map)
      return current !== before
    },
    replace(texts) {
      const shown = answerTexts(current, format)
      const replaced = withAnswerTexts(current, format, texts)
      if (replaced === undefined) return false
      const isChanged = texts.some(({ content }, at) => content !== shown[at]?.content)
      // The guard was not shown the texts of citations.
      current = isChanged ? mapRepeatedTexts(replaced, emptyTexts) : replaced
      return true
    },
  }
  const refusal = await judge(context, call, judged)
  return { body: current, refusal }
}

/** The same of a streamed answer that is held; undefined where it may go on. */
export function guardHeld(
  context: RequestContext,
  call: ModelCall,
  held: HeldStream,
): Promise<RespondVerdict | undefined> {
  const { bufferLimit } = context.exchange
  if (held.length > bufferLimit) {
    throw new LlmError(502, `the answer has more than ${bufferLimit} characters to be judged`)
  }
  return judge(context, call, {
    get texts() {
      return held.texts
    },
    mask: (mask) => held.mask(mask),
    replace: (texts) => held.replace(texts),
  })
}

async function judge(
  context: RequestContext,
  call: ModelCall,
  judged: Judged,
): Promise<RespondVerdict | undefined> {
  const { headers } = context.exchange.response ?? {}
  for (const guard of call.policy?.responseGuards ?? []) {
    const outcome =
      guard.type === 'webhook' && headers !== undefined
        ? await askWebhook(guard, call, judged, headers)
        : mask(guard, judged)
    if (context.over) return undefined
    const action = typeof outcome === 'string' ? outcome : 'Reject'
    call.checks.push({ phase: 'Response', guard: guard.type, action })
    if (typeof outcome !== 'string') return outcome
  }
  return undefined
}

type Outcome = Extract<GuardCheck['action'], 'Allow' | 'Mask'> | RespondVerdict

function mask(guard: Guard, judged: Judged): Outcome {
  if (guard.type !== 'regex') throw guardFailure(`${guard.type} cannot judge answers`)
  return judged.mask(guard.mask) ? 'Mask' : 'Allow'
}

async function askWebhook(
  guard: WebhookGuard,
  call: ModelCall,
  judged: Judged,
  headers: HeaderFields,
): Promise<Outcome> {
  try {
    const action = await guard.ask('response', judged.texts, headers)
    if (action.type === 'pass') return 'Allow'
    if (action.type === 'reject') return guardRefusal(guard.refusal, action)
    if (judged.replace(action.texts)) return 'Mask'
    throw guardFailure('the mask has another number of choices than the answer')
  } catch (error) {
    call.checks.push({ phase: 'Response', guard: 'webhook', action: 'Fail' })
    throw error
  }
}
