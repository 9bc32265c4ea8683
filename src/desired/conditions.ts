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
): DecidedCondition {
  return { type, status: 'False', reason, message: clip(message), observedGeneration: generation }
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
    : conditionFalse(type, failure.reason, generation, failure.message)
}
