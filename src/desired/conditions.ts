/** Building conditions; types and reasons are those of Gateway API 1.6 unless noted. */
import type { DecidedCondition } from '../model/conditions.ts'

export function conditionTrue(
  type: string,
  reason: string,
  generation: number,
  message = '',
): DecidedCondition {
  return { type, status: 'True', reason, message: clip(message), observedGeneration: generation }
}

export function conditionFalse(
  type: string,
  reason: string,
  generation: number,
  message: string,
  own?: readonly string[],
): DecidedCondition {
  return {
    type,
    status: 'False',
    reason,
    message: clip(message),
    observedGeneration: generation,
    ...(own !== undefined && { own }),
  }
}

/** For what cannot be told yet. */
export function conditionUnknown(
  type: string,
  reason: string,
  generation: number,
  message: string,
): DecidedCondition {
  return { type, status: 'Unknown', reason, message: clip(message), observedGeneration: generation }
}

/** metav1.Condition allows 32768 characters; long lists are cut well before. */
function clip(message: string): string {
  return message.length <= 8192 ? message : `${message.slice(0, 8189)}...`
}

/** A condition that does not hold: reason and message, before it is known where it will stand. */
export interface Failure {
  readonly reason: string
  readonly message: string
  /** As in `DecidedCondition`. */
  readonly own?: readonly string[]
}

/** Marks what another object, or a running cluster, can cure or reports itself. */
export const elsewhere = { own: [] } as const

/** The messages that are mistakes in the object. */
export function ownMessages({ message, own = [message] }: Pick<Failure, 'message' | 'own'>) {
  return own
}

/** The own messages of several, each once. */
export function allOwn(failures: readonly Pick<Failure, 'message' | 'own'>[]): {
  readonly own: readonly string[]
} {
  return { own: [...new Set(failures.flatMap(ownMessages))] }
}

/** The first failure, with the mistakes of all. */
export function firstOf(failures: readonly Failure[]): Failure | null {
  const [first] = failures
  return first === undefined ? null : { ...first, ...allOwn(failures) }
}

/** `type` False with the failure, or True with the reason where there is none. */
export function conditionOf(
  type: string,
  failure: Failure | undefined,
  reasonWhenTrue: string,
  generation: number,
  message = '',
): DecidedCondition {
  return failure === undefined
    ? conditionTrue(type, reasonWhenTrue, generation, message)
    : conditionFalse(type, failure.reason, generation, failure.message, failure.own)
}
